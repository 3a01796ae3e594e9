package care

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// maxTimeout and maxTimeoutLeases are the maximum timeouts in seconds of webhooks for protected resources, and for
	// leases, which are renewed every few seconds.
	maxTimeout, maxTimeoutLeases = 15, 3
	labelApp                     = "app"
	appResourceManager           = "gardener-resource-manager"
	managedByGardener            = "gardener"
)

// Configuration is a ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
type Configuration struct {
	Kind, Name          string
	Labels, Annotations map[string]string
	Webhooks            []Webhook
}

func (c Configuration) String() string { return c.Kind + " " + c.Name }

// Webhook contains the fields that both kinds of webhooks have in common.
type Webhook struct {
	Name string
	// FailurePolicy defaults to Fail if it is nil.
	FailurePolicy *admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds defaults to 10 if it is nil. Gardener treats nil as too long. The API server always sets it.
	TimeoutSeconds                    *int32
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	Rules                             []admissionregistrationv1.RuleWithOperations
}

// protected are resources, in all API versions, that must be writable for a cluster to wake up and for nodes to join.
// namespace and object are the labels against which the selectors of webhooks are evaluated. Cluster-scoped resources
// have no namespace. Namespaces are evaluated as their own namespace.
type protected struct {
	group             string
	resources         []string
	namespace, object labels.Set
	clusterScoped     bool
}

// Labels of namespaces, and of objects that the resource-manager applies.
var (
	ofSystem  = labels.Set{constants.LabelGardenPurpose: metav1.NamespaceSystem, corev1.LabelMetadataName: metav1.NamespaceSystem}
	ofDefault = labels.Set{corev1.LabelMetadataName: metav1.NamespaceDefault}
	ofLeases  = labels.Set{corev1.LabelMetadataName: corev1.NamespaceNodeLease}
	managed   = labels.Set{resourcesv1alpha1.LabelManagedBy: managedByGardener}
)

// protectedResources is Gardener's list. In namespace default, the Service and Endpoints of the API server are protected,
// which have these labels.
var protectedResources = []protected{
	{group: "", resources: []string{
		"pods", "pods/status", "configmaps", "endpoints", "secrets", "serviceaccounts", "services", "services/status",
	}, namespace: ofSystem},
	{group: "apps", resources: []string{
		"controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale",
		"replicasets", "replicasets/status", "replicasets/scale",
	}, namespace: ofSystem},
	{group: "networking.k8s.io", resources: []string{"networkpolicies"}, namespace: ofSystem},
	{group: "rbac.authorization.k8s.io", resources: []string{"roles", "rolebindings"}, namespace: ofSystem},
	{group: "coordination.k8s.io", resources: []string{"leases"}, namespace: ofSystem},
	{group: "", resources: []string{"services"}, namespace: ofDefault, object: labels.Set{"component": "apiserver", "provider": "kubernetes"}},
	{group: "", resources: []string{"endpoints"}, namespace: ofDefault, object: labels.Set{discoveryv1.LabelSkipMirror: "true"}},
	{group: "", resources: []string{"nodes", "nodes/status"}, clusterScoped: true},
	{group: "", resources: []string{"namespaces"}, namespace: ofSystem, object: ofSystem, clusterScoped: true},
	{group: "rbac.authorization.k8s.io", resources: []string{"clusterroles", "clusterrolebindings"}, object: managed, clusterScoped: true},
	{group: "apiregistration.k8s.io", resources: []string{"apiservices"}, object: managed, clusterScoped: true},
	{group: "certificates.k8s.io", resources: []string{
		"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status",
	}, clusterScoped: true},
	{group: "scheduling.k8s.io", resources: []string{"priorityclasses"}, object: managed, clusterScoped: true},
	{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, object: managed, clusterScoped: true},
}

// protectedLeases are the leases that nodes and system components renew as heartbeats.
var protectedLeases = []protected{
	{group: "coordination.k8s.io", resources: []string{"leases"}, namespace: ofLeases},
	{group: "coordination.k8s.io", resources: []string{"leases"}, namespace: ofSystem},
}

// ofGardener reports whether a configuration belongs to Gardener. These are correct.
func (c Configuration) ofGardener() bool {
	return c.Labels[labelApp] == appResourceManager || c.Labels[resourcesv1alpha1.LabelManagedBy] == managedByGardener
}

// problems describes the webhooks of a configuration that may prevent the cluster from waking up or nodes from joining.
func (c Configuration) problems() []string {
	if c.ofGardener() {
		return nil
	}
	var problems []string
	for _, webhook := range c.Webhooks {
		if why := webhook.problem(); why != "" {
			problems = append(problems, fmt.Sprintf("%s, webhook %s: %s", c, webhook.Name, why))
		}
	}
	return problems
}

// problem returns why a webhook is problematic, or an empty string.
func (w Webhook) problem() string {
	if lease := w.matching(protectedLeases); len(lease) > 0 && tooLong(w.TimeoutSeconds, maxTimeoutLeases) {
		return fmt.Sprintf("it is called for leases, with %s, more than %d s", w.timeout(), maxTimeoutLeases)
	}
	if !w.fails() && !tooLong(w.TimeoutSeconds, maxTimeout) {
		return ""
	}
	matched := w.matching(protectedResources)
	if len(matched) == 0 {
		return ""
	}
	policy := admissionregistrationv1.Ignore
	if w.fails() {
		policy = admissionregistrationv1.Fail
	}
	return fmt.Sprintf("it is called for %s, with failurePolicy %s and %s", matched[0].first(w.Rules), policy, w.timeout())
}

// fails reports whether a request fails if the webhook does not answer.
func (w Webhook) fails() bool {
	return ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail
}

// timeout returns the timeout for messages.
func (w Webhook) timeout() string {
	if w.TimeoutSeconds == nil {
		return "no timeoutSeconds"
	}
	return fmt.Sprintf("timeoutSeconds %d", *w.TimeoutSeconds)
}

func tooLong(timeout *int32, most int32) bool { return timeout == nil || *timeout > most }

// matching returns the protected resources for which a webhook is called.
func (w Webhook) matching(all []protected) []protected {
	return slices.DeleteFunc(slices.Clone(all), func(p protected) bool {
		return p.first(w.Rules) == "" || !p.namespaceMatches(w.NamespaceSelector) || !selects(w.ObjectSelector, p.object)
	})
}

// namespaceMatches reports whether the namespace selector of a webhook matches requests for the resources. It always does
// for resources without a namespace.
func (p protected) namespaceMatches(selector *metav1.LabelSelector) bool {
	return p.clusterScoped && p.namespace == nil || selects(selector, p.namespace)
}

// selects reports whether a selector matches labels. A nil selector matches everything. API servers reject invalid selectors.
func selects(selector *metav1.LabelSelector, of labels.Set) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}

// first returns the first of the resources that a rule matches, or an empty string.
func (p protected) first(rules []admissionregistrationv1.RuleWithOperations) string {
	for _, resource := range p.resources {
		for i := range rules {
			if p.covers(&rules[i], resource) {
				return resource
			}
		}
	}
	return ""
}

// covers reports whether a rule matches the creation or update of a resource.
func (p protected) covers(rule *admissionregistrationv1.RuleWithOperations, resource string) bool {
	writes := slices.ContainsFunc(rule.Operations, func(operation admissionregistrationv1.OperationType) bool {
		return slices.Contains([]admissionregistrationv1.OperationType{
			admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update,
		}, operation)
	})
	scope, other := ptr.Deref(rule.Scope, admissionregistrationv1.AllScopes), admissionregistrationv1.ClusterScope
	if p.clusterScoped {
		other = admissionregistrationv1.NamespacedScope
	}
	return writes && scope != other && (slices.Contains(rule.APIGroups, p.group) || slices.Contains(rule.APIGroups, "*")) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool { return matches(pattern, resource) })
}

// matches reports whether the pattern of a rule, such as "*", "*/*", "pods/*" or "*/scale", matches a resource or
// subresource, like API servers do.
func matches(pattern, resource string) bool {
	wanted, wantedSub, _ := strings.Cut(pattern, "/")
	name, sub, _ := strings.Cut(resource, "/")
	return (wanted == "*" || wanted == name) && (wantedSub == "*" || wantedSub == sub)
}
