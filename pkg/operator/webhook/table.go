// Package webhook has the table of the operator's webhooks in the runtime cluster.
package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/webhook/auditpolicy"
	"github.com/trellis-k8s/trellis/pkg/operator/webhook/extension"
	"github.com/trellis-k8s/trellis/pkg/operator/webhook/garden"
	"github.com/trellis-k8s/trellis/pkg/operator/webhook/namespacedeletion"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// Name is the name of the webhook configurations, as in Gardener.
const Name = "gardener-operator"

// timeoutSeconds is how long the API server waits for a response.
const timeoutSeconds = 10

const (
	created = admissionregistrationv1.Create
	updated = admissionregistrationv1.Update
	deleted = admissionregistrationv1.Delete
)

// Table returns the webhooks, in alphabetical order of their names. The reader must read from the runtime cluster without a cache.
func Table(live client.Reader) []webhookserver.Webhook {
	audit := row("audit-policies", auditpolicy.Path, webhookserver.Validating, auditpolicy.New(live),
		gardener("gardens", created, updated), core("configmaps", updated))
	// Writes of other ConfigMaps do not depend on the operator.
	audit.Calls.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name: "has-policy", Expression: "request.kind.kind != 'ConfigMap' || (request.namespace == '" + constants.GardenNamespace + "' && " +
			"(has(object.data) && '" + auditpolicy.Key + "' in object.data || has(oldObject.data) && '" + auditpolicy.Key + "' in oldObject.data))",
	}}
	namespaces := row("validate-namespace-deletion", namespacedeletion.Path, webhookserver.Validating, namespacedeletion.New(live), core("namespaces", deleted))
	namespaces.Calls.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: constants.GardenNamespace}}
	return []webhookserver.Webhook{
		audit,
		row("default-extension", extension.PathDefault, webhookserver.Mutating, extension.NewDefaulting(), gardener("extensions", created, updated)),
		row("default-garden", garden.PathDefault, webhookserver.Mutating, garden.NewDefaulting(), gardener("gardens", created, updated)),
		row("validate-extension", extension.PathValidate, webhookserver.Validating, extension.NewValidating(),
			gardener("extensions", created, updated, deleted)),
		row("validate-garden", garden.PathValidate, webhookserver.Validating, garden.NewValidating(live),
			gardener("gardens", created, updated, deleted)),
		namespaces,
	}
}

func row(
	name, path string, kind webhookserver.Kind, handler admission.Handler, rules ...admissionregistrationv1.RuleWithOperations,
) webhookserver.Webhook {
	return webhookserver.Webhook{
		Name: name, Path: path, Kind: kind, Handler: &admission.Webhook{Handler: handler},
		Calls: &webhookserver.Calls{
			Rules: rules, MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: timeoutSeconds,
		},
	}
}

// gardener returns a rule for a resource of the operator.
func gardener(resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return rule(v1alpha1.SchemeGroupVersion.Group, v1alpha1.SchemeGroupVersion.Version, resource, operations)
}

// core returns a rule for a resource of the core group.
func core(resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return rule("", "v1", resource, operations)
}

func rule(group, version, resource string, operations []admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}, Scope: ptr.To(admissionregistrationv1.AllScopes),
	}}
}

// Configuration returns the description of the webhook configurations for the runtime cluster.
func Configuration(reach webhookserver.ClientConfig) webhookserver.Configuration {
	return webhookserver.Configuration{
		Meta: metav1.ObjectMeta{Name: Name}, NameSuffix: ".operator.gardener.cloud", Reach: reach, ReviewVersions: []string{"v1"},
	}
}
