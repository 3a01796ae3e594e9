package vpa

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// webhookConfiguration is the name of the registration in a seed, webhookConfigurationShoot that in a shoot.
const (
	webhookConfiguration      = "vpa-webhook-config-seed"
	webhookConfigurationShoot = "vpa-webhook-config-shoot"
)

// registration returns the webhook configuration of the admission controller, which mutates new Pods and validates
// autoscalers. If it is unavailable, Pods are admitted with the requests of their manifests.
func registration(name string, server admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.MutatingWebhookConfiguration {
	rule := func(group, version, resource string, operations ...admissionregistrationv1.OperationType,
	) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			Scope: ptr.To(admissionregistrationv1.AllScopes),
		}}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelsOf(admissionController)},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "vpa.k8s.io",
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule("", "v1", "pods", admissionregistrationv1.Create),
				rule("autoscaling.k8s.io", "*", "verticalpodautoscalers", admissionregistrationv1.Create, admissionregistrationv1.Update),
			},
			ClientConfig:  server,
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore), MatchPolicy: ptr.To(admissionregistrationv1.Exact),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy), // other webhooks may add containers
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](10),
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// inSeed returns how API servers of a seed connect to the admission controller.
func inSeed(values Values) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: values.Namespace, Name: webhookService, Port: ptr.To[int32](443)},
		CABundle: values.CABundle,
	}
}

// The name prefixes of the ClusterRoles in a seed and in a shoot.
const (
	rolePrefix      = "gardener.cloud:vpa:"
	rolePrefixSeed  = rolePrefix + "source:"
	rolePrefixShoot = rolePrefix + "target:"
)

// autoscalers is the API group of autoscalers and checkpoints.
const autoscalers = "autoscaling.k8s.io"

// read are the verbs for read access.
var read = []string{"get", "list", "watch"}

// rights returns the permissions in the programs' own manifests (deploy/vpa-rbac.yaml of their module), except those to
// register the webhook. The names of ClusterRoles begin with the prefix, the accounts are in the namespace.
func rights(prefix, namespace string) []client.Object {
	account := func(name string) parts.Account { return parts.Account{Namespace: namespace, Name: name} }
	labels := map[string]string{"gardener.cloud/role": role}
	var objects []client.Object
	for _, one := range []struct {
		name     string
		rules    []rbacv1.PolicyRule
		accounts []parts.Account
	}{
		{"actor", actor(), []parts.Account{account(recommender), account(updater)}},
		{"status-actor", []rbacv1.PolicyRule{parts.Rule(autoscalers, []string{"verticalpodautoscalers/status"}, "get", "patch")},
			[]parts.Account{account(recommender)}},
		{"checkpoint-actor", []rbacv1.PolicyRule{
			parts.Rule(autoscalers, []string{"verticalpodautoscalercheckpoints"}, append(read[:3:3], "create", "patch", "delete")...),
		}, []parts.Account{account(recommender)}},
		{"metrics-reader", []rbacv1.PolicyRule{parts.Rule("metrics.k8s.io", []string{"pods"}, "get", "list")},
			[]parts.Account{account(recommender)}},
		{"target-reader", targetReader(), []parts.Account{account(admissionController), account(recommender), account(updater)}},
		{"evictioner", []rbacv1.PolicyRule{
			parts.Rule("apps", []string{"replicasets"}, "get"), parts.Rule("", []string{"pods/eviction"}, "create"),
		}, []parts.Account{account(updater)}},
		{"updater-in-place", []rbacv1.PolicyRule{parts.Rule("", []string{"pods", "pods/resize"}, "patch")},
			[]parts.Account{account(updater)}},
		{"admission-controller", []rbacv1.PolicyRule{
			parts.Rule("", []string{"pods", "configmaps", "nodes", "limitranges"}, read...),
			parts.Rule(autoscalers, []string{"verticalpodautoscalers"}, read...),
		}, []parts.Account{account(admissionController)}},
	} {
		objects = append(objects, parts.ClusterRights(prefix+one.name, labels, one.rules, one.accounts...)...)
	}
	return append(objects, leases(namespace, labels, account)...)
}

// actor returns the permissions to read Pods and autoscalers.
func actor() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		parts.Rule("", []string{"pods", "nodes", "limitranges"}, read...),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: append(read[:3:3], "create", "patch", "update")},
		parts.Rule(autoscalers, []string{"verticalpodautoscalers"}, read...),
	}
}

// targetReader returns the permissions to find the Pods of a workload.
func targetReader() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		parts.Rule("*", []string{"*/scale"}, "get", "watch"),
		parts.Rule("", []string{"replicationcontrollers"}, read...),
		parts.Rule("apps", []string{"daemonsets", "deployments", "replicasets", "statefulsets"}, read...),
		parts.Rule("batch", []string{"jobs", "cronjobs"}, read...),
	}
}

// leases returns the permissions for leader election, and for the Lease through which the updater monitors the
// admission controller.
func leases(namespace string, labels map[string]string, account func(string) parts.Account) []client.Object {
	group := "coordination.k8s.io"
	own := func(verbs []string, names ...string) []rbacv1.PolicyRule {
		named := parts.Rule(group, []string{"leases"}, verbs...)
		named.ResourceNames = names
		return []rbacv1.PolicyRule{parts.Rule(group, []string{"leases"}, "create"), named}
	}
	var objects []client.Object
	for _, one := range []struct {
		account string
		rules   []rbacv1.PolicyRule
	}{
		{admissionController, own([]string{"get", "update"}, admissionController)},
		{recommender, own([]string{"get", "watch", "update"}, recommender, recommender+"-lease")},
		{updater, append(own([]string{"get", "watch", "update"}, updater), parts.Rule(group, []string{"leases"}, read...))},
	} {
		name := rolePrefix + "leases:" + one.account
		objects = append(objects, parts.Rights(namespace, name, labels, one.rules, account(one.account))...)
	}
	return objects
}
