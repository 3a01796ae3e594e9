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
	// maxTimeout and maxTimeoutLeases are how many seconds the API server may wait for a webhook of a protected resource, and of leases, which are
	// renewed every few seconds.
	maxTimeout, maxTimeoutLeases = 15, 3
	labelApp                     = "app"
	appResourceManager           = "gardener-resource-manager"
	managedByGardener            = "gardener"
)

// Configuration is a configuration of webhooks, validating or mutating.
type Configuration struct {
	Kind, Name          string
	Labels, Annotations map[string]string
	Webhooks            []Webhook
}

func (c Configuration) String() string { return c.Kind + " " + c.Name }

// Webhook is what both kinds of webhooks have in common.
type Webhook struct {
	Name string
	// FailurePolicy is Fail if it is nil.
	FailurePolicy *admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds are 10 in effect if it is nil. Gardener counts nil as too long, as the API server always sets it.
	TimeoutSeconds                    *int32
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	Rules                             []admissionregistrationv1.RuleWithOperations
}

// protected are resources that have to be written for a cluster to start, and for nodes to join it, of all API versions. Selectors of webhooks are
// held against the labels of the namespace and of the objects. Cluster-scoped resources have no namespace, except for Namespaces, which are their own.
type protected struct {
	group             string
	resources         []string
	namespace, object labels.Set
	clusterScoped     bool
}

// The labels of the namespaces, and of what the resource-manager applies.
var (
	ofSystem  = labels.Set{constants.LabelGardenPurpose: metav1.NamespaceSystem, corev1.LabelMetadataName: metav1.NamespaceSystem}
	ofDefault = labels.Set{corev1.LabelMetadataName: metav1.NamespaceDefault}
	ofLeases  = labels.Set{corev1.LabelMetadataName: corev1.NamespaceNodeLease}
	managed   = labels.Set{resourcesv1alpha1.LabelManagedBy: managedByGardener}
)

// protectedResources is Gardener's list. What is protected in the namespace default are the Service of the API server and its Endpoints, which have
// these labels.
var protectedResources = []protected{
	{group: "", resources: []string{"pods", "pods/status", "configmaps", "endpoints", "secrets", "serviceaccounts", "services", "services/status"}, namespace: ofSystem},
	{group: "apps", resources: []string{
		"controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "replicasets", "replicasets/status", "replicasets/scale",
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

// protectedLeases are those by which nodes and components of the cluster's system show that they live.
var protectedLeases = []protected{
	{group: "coordination.k8s.io", resources: []string{"leases"}, namespace: ofLeases},
	{group: "coordination.k8s.io", resources: []string{"leases"}, namespace: ofSystem},
}

// ofGardener reports whether a configuration is one of gardener's own, which is correct.
func (c Configuration) ofGardener() bool {
	return c.Labels[labelApp] == appResourceManager || c.Labels[resourcesv1alpha1.LabelManagedBy] == managedByGardener
}

// problems names the webhooks of a configuration that may keep the cluster from starting, or nodes from joining it, and says why.
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

// problem says why a webhook is problematic; empty if it is not.
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

func (w Webhook) timeout() string {
	if w.TimeoutSeconds == nil {
		return "no timeoutSeconds"
	}
	return fmt.Sprintf("timeoutSeconds %d", *w.TimeoutSeconds)
}

func tooLong(timeout *int32, most int32) bool { return timeout == nil || *timeout > most }

// matching returns which of the protected resources a webhook is called for.
func (w Webhook) matching(all []protected) []protected {
	return slices.DeleteFunc(slices.Clone(all), func(p protected) bool {
		return p.first(w.Rules) == "" || !p.namespaceMatches(w.NamespaceSelector) || !selects(w.ObjectSelector, p.object)
	})
}

// namespaceMatches reports whether a webhook's selector of namespaces lets a request for the resources pass. It says nothing about resources that are in
// no namespace.
func (p protected) namespaceMatches(selector *metav1.LabelSelector) bool {
	return p.clusterScoped && p.namespace == nil || selects(selector, p.namespace)
}

// selects reports whether a selector matches labels. One that is not set matches all; one that is not valid is refused by API servers.
func selects(selector *metav1.LabelSelector, of labels.Set) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}

// first returns the first of the resources that one of the rules is for; empty if no rule is for any of them.
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

// covers reports whether a rule is for creations or updates of a resource.
func (p protected) covers(rule *admissionregistrationv1.RuleWithOperations, resource string) bool {
	writes := slices.ContainsFunc(rule.Operations, func(operation admissionregistrationv1.OperationType) bool {
		return operation == admissionregistrationv1.OperationAll || operation == admissionregistrationv1.Create || operation == admissionregistrationv1.Update
	})
	scope, other := ptr.Deref(rule.Scope, admissionregistrationv1.AllScopes), admissionregistrationv1.ClusterScope
	if p.clusterScoped {
		other = admissionregistrationv1.NamespacedScope
	}
	return writes && scope != other && (slices.Contains(rule.APIGroups, p.group) || slices.Contains(rule.APIGroups, "*")) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool { return matches(pattern, resource) })
}

// matches reports whether the pattern of a rule, such as "*", "*/*", "pods/*" or "*/scale", is for a resource or subresource, as API servers decide it.
func matches(pattern, resource string) bool {
	wanted, wantedSub, _ := strings.Cut(pattern, "/")
	name, sub, _ := strings.Cut(resource, "/")
	return (wanted == "*" || wanted == name) && (wantedSub == "*" || wantedSub == sub)
}
