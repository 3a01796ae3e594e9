package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// labelPrefixUses is the prefix of labels on the namespaces of Shoots that use an Extension of a type.
	labelPrefixUses = "extensions.gardener.cloud/"
	// purposeCloudProvider is the purpose of the Secret with the credentials of the infrastructure.
	purposeCloudProvider = "cloudprovider"
)

// Writes returns the rule for the creation and update of resources of a group and version.
func Writes(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: ptr.To(admissionregistrationv1.AllScopes),
		},
	}
}

// ShootProvider selects the namespaces of Shoots on an infrastructure.
func ShootProvider(provider string) *metav1.LabelSelector {
	return in(constants.LabelShootProvider, provider)
}

// SeedProvider selects the namespaces of Shoots in seeds on an infrastructure.
func SeedProvider(provider string) *metav1.LabelSelector {
	return in(constants.LabelSeedProvider, provider)
}

// BackupProvider selects the namespaces of Shoots whose backups are stored on an infrastructure.
func BackupProvider(provider string) *metav1.LabelSelector {
	return in(constants.LabelBackupProvider, provider)
}

// ShootNetwork selects the namespaces of Shoots on an infrastructure with a network of a type.
func ShootNetwork(provider, network string) *metav1.LabelSelector {
	selector := ShootProvider(provider)
	selector.MatchExpressions = append(selector.MatchExpressions, in(constants.LabelNetworkingProvider, network).MatchExpressions...)
	return selector
}

// ExtensionType selects the namespaces of Shoots with an Extension of a type.
func ExtensionType(ofType string) *metav1.LabelSelector { return in(labelPrefixUses+ofType, "true") }

// KubeSystem selects the namespace kube-system of a Shoot.
func KubeSystem() *metav1.LabelSelector {
	return in(constants.LabelGardenPurpose, "kube-system")
}

// ControlPlaneObjects selects the objects of a control plane that webhooks of infrastructures may modify.
func ControlPlaneObjects() *metav1.LabelSelector {
	return in(constants.LabelMutatedByControlPlaneWebhook, "true")
}

// CloudProviderSecrets selects the Secrets with the credentials of the infrastructure. Use it with [ShootProvider].
func CloudProviderSecrets() *metav1.LabelSelector {
	return in(constants.LabelGardenPurpose, purposeCloudProvider)
}

func in(label string, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: label, Operator: metav1.LabelSelectorOpIn, Values: values},
	}}
}
