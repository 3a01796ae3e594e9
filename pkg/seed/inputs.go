package seed

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// FlowName is the value of flow.LabelFlow on all emitted objects.
	FlowName = inventory.FlowSeed
	// minimumVersion is the oldest supported Kubernetes version of a seed.
	minimumVersion = "1.32"
	// extensionTimeout is how long the flow waits for extensions before it reports an error.
	extensionTimeout = time.Minute
	// again is how often the flow checks for references to a Seed that is being deleted.
	again = time.Minute
)

// Inputs are all inputs of the flow. Unless documented otherwise, a nil or empty field is not known yet, and the
// bundles that need it are held.
type Inputs struct {
	// Owner is the Seed, Namespace the namespace of gardenlet, and Class the class of the seed's resource-manager.
	Owner     flow.Owner
	Namespace string
	Class     string
	// Seed as declared, with its last operation.
	Seed *corev1beta1.Seed
	// Config of gardenlet.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Version of the program, and Images of the components.
	Version string
	Images  images.Vector

	// KubernetesVersion of the seed.
	KubernetesVersion string
	// Identity of the cluster, and IdentityOrigin, which component has set it. The origin is empty if no ConfigMap records
	// it.
	Identity, IdentityOrigin string
	// IsGarden is set if the seed is also the garden, and IsShoot if it is a self-hosted Shoot. The garden operator or
	// gardenadm then deploys some components.
	IsGarden, IsShoot bool
	// HasIstio is set if the operator deploys the control plane of Istio in a seed that is the garden. OperatorVersion is the version of this
	// operator; empty if it is not known.
	HasIstio        bool
	OperatorVersion string
	// Nodes is the number of nodes of the seed; 0 if unknown.
	Nodes int
	// APIServers are the addresses of the seed's API server.
	APIServers []netip.AddrPort
	// HasVerticalPodAutoscaler reports whether the kind is defined in the seed.
	HasVerticalPodAutoscaler *bool
	// Secrets by config name.
	Secrets map[string]secrets.Item
	// SecretsRenewed is when the next Secret must be renewed; zero for never.
	SecretsRenewed time.Time
	// Extensions are the extensions of the garden.
	Extensions *Extensions
	// References are the objects listed in spec.resources, as read from the garden, by their name in the list. Missing
	// entries are unknown.
	References map[string]Reference
	// usedGateways are the namespaces of the gateways through which API servers are reached, sorted; nil if unknown.
	usedGateways []string
	// ingressAddresses are those to which the DNS record of the domain for Ingresses points, and dnsCredentials the credentials for it. recordMade has the
	// type and name of the existing record; empty if there is none.
	ingressAddresses []string
	dnsCredentials   *Reference
	recordMade       string
	// Bucket is the BackupBucket of the Seed.
	Bucket *corev1beta1.BackupBucket

	// Emitted are the existing bundles of the Seed.
	Emitted []flow.Key
	// Kept are the existing bundles whose objects are kept on deletion.
	Kept map[flow.Key]bool
	// Deleting is set if the Seed is being deleted. Users then describes the objects that refer to it; nil if unknown.
	Deleting bool
	Users    *[]string
	// Instances describes the objects of kinds that the seed's definitions define; nil if unknown.
	Instances *[]string

	Now time.Time
}

// Extensions are the extensions of the garden and their installations in the seed.
type Extensions struct {
	Registrations []corev1beta1.ControllerRegistration
	Installations []corev1beta1.ControllerInstallation
}

// Reference is an object listed in spec.resources. Exactly one field is set.
type Reference struct {
	Secret           *corev1.Secret
	ConfigMap        *corev1.ConfigMap
	WorkloadIdentity *securityv1alpha1.WorkloadIdentity
}

// operatorRuns reports whether the garden operator or gardenadm deploys the components that exist once per cluster.
func (in Inputs) operatorRuns() bool { return in.IsGarden || in.IsShoot }

// isOperators reports whether the garden operator owns a part.
func (in Inputs) isOperators(name string) bool {
	return inventory.Cluster{Garden: in.IsGarden, Istio: in.HasIstio}.IsOperators(name)
}

func (in Inputs) settings() corev1beta1.SeedSettings {
	return ptr.Deref(in.Seed.Spec.Settings, corev1beta1.SeedSettings{})
}

// autoscaling reports whether the Vertical Pod Autoscaler is enabled in the Seed.
func (in Inputs) autoscaling() bool {
	setting := in.settings().VerticalPodAutoscaler
	return setting == nil || setting.Enabled
}

// reservations returns the enabled excess capacity reservations.
func (in Inputs) reservations() []corev1beta1.SeedSettingExcessCapacityReservationConfig {
	setting := in.settings().ExcessCapacityReservation
	if setting == nil || !ptr.Deref(setting.Enabled, true) {
		return nil
	}
	return setting.Configs
}

// key returns the key of a bundle.
func (in Inputs) key(name string) flow.Key { return flow.Key{Namespace: in.Namespace, Name: name} }

func (in Inputs) emitted(name string) bool { return slices.Contains(in.Emitted, in.key(name)) }

// checkVersion returns why the Kubernetes version of the seed is not supported, empty if it is.
func (in Inputs) checkVersion() string {
	version, err := semver.NewVersion(in.KubernetesVersion)
	if err != nil {
		return fmt.Sprintf("the Kubernetes version of the seed, %q, is invalid: %v", in.KubernetesVersion, err)
	}
	minimum := semver.MustParse(minimumVersion)
	if version.Major() < minimum.Major() || version.Major() == minimum.Major() && version.Minor() < minimum.Minor() {
		return fmt.Sprintf("the seed has Kubernetes version %s, but the oldest supported version is %s: update the seed",
			in.KubernetesVersion, minimumVersion)
	}
	return ""
}

// deadline returns when a wait becomes an error: extensionTimeout after the last progress of the operation. It then
// remains an error. Other errors do not stop the timeout.
func (in Inputs) deadline() time.Time {
	last := in.Seed.Status.LastOperation
	switch {
	case last == nil:
		return in.Now.Add(extensionTimeout)
	case flow.IsNotInTime(*last):
		return in.Now
	case last.State == corev1beta1.LastOperationStateProcessing:
		return last.LastUpdateTime.Add(extensionTimeout)
	}
	return in.Now.Add(extensionTimeout)
}

// BucketName returns the name of the BackupBucket of a Seed.
func BucketName(seed *corev1beta1.Seed) string { return string(seed.UID) }

// required returns the sorted extension kinds and types that the Seed itself needs, such as "Extension/filter".
func (in Inputs) required() []string {
	wanted := []string{}
	if provider := in.Seed.Spec.DNS.Provider; provider != nil {
		wanted = append(wanted, "DNSRecord/"+provider.Type)
	}
	for _, kind := range []string{"ControlPlane", "Infrastructure", "Worker"} {
		wanted = append(wanted, kind+"/"+in.Seed.Spec.Provider.Type)
	}
	for _, extension := range in.extensions() {
		wanted = append(wanted, "Extension/"+extension.Type)
	}
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

// Requires reports whether a Seed itself, not only a Shoot, needs an extension of a registration.
func Requires(seed *corev1beta1.Seed, registration *corev1beta1.ControllerRegistration) bool {
	in := Inputs{Seed: seed, Extensions: &Extensions{Registrations: []corev1beta1.ControllerRegistration{*registration}}}
	wanted := in.required()
	return slices.ContainsFunc(registration.Spec.Resources, func(resource corev1beta1.ControllerResource) bool {
		return ptr.Deref(resource.Primary, true) && slices.Contains(wanted, resource.Kind+"/"+resource.Type)
	})
}

// extensions returns the extensions of the Seed, sorted by type: those in its spec and those that are enabled for all
// seeds.
func (in Inputs) extensions() []corev1beta1.Extension {
	var wanted []corev1beta1.Extension
	named := map[string]bool{}
	for _, extension := range in.Seed.Spec.Extensions {
		named[extension.Type] = true
		if !ptr.Deref(extension.Disabled, false) {
			wanted = append(wanted, extension)
		}
	}
	for _, registration := range in.Extensions.Registrations {
		for _, resource := range registration.Spec.Resources {
			automatic := resource.Kind == "Extension" && ptr.Deref(resource.Primary, true) &&
				slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeSeed)
			if automatic && !named[resource.Type] {
				named[resource.Type] = true
				wanted = append(wanted, corev1beta1.Extension{Type: resource.Type})
			}
		}
	}
	slices.SortFunc(wanted, func(a, b corev1beta1.Extension) int { return strings.Compare(a.Type, b.Type) })
	return wanted
}

// missingExtensions returns the required extensions that are not ready, with the reasons.
func (in Inputs) missingExtensions() []string {
	serving := map[string][]string{}
	for _, registration := range in.Extensions.Registrations {
		for _, resource := range registration.Spec.Resources {
			if ptr.Deref(resource.Primary, true) {
				serving[resource.Kind+"/"+resource.Type] = append(serving[resource.Kind+"/"+resource.Type], registration.Name)
			}
		}
	}
	var missing []string
	for _, wanted := range in.required() {
		if why := in.notInstalled(serving[wanted]); why != "" {
			missing = append(missing, wanted+" ("+why+")")
		}
	}
	return missing
}

// notInstalled returns why none of the registrations is installed and ready, empty if one is.
func (in Inputs) notInstalled(registrations []string) string {
	if len(registrations) == 0 {
		return "no ControllerRegistration serves it"
	}
	why := "ControllerRegistration " + registrations[0] + " has no ControllerInstallation in the seed"
	for _, installation := range in.Extensions.Installations {
		if !slices.Contains(registrations, installation.Spec.RegistrationRef.Name) {
			continue
		}
		if why = notReady(&installation); why == "" {
			return ""
		}
	}
	return why
}

// notReady returns which condition of an installation is not met, empty if all are.
func notReady(installation *corev1beta1.ControllerInstallation) string {
	for _, wanted := range []struct {
		kind   corev1beta1.ConditionType
		status corev1beta1.ConditionStatus
	}{
		{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue},
		{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue},
		{corev1beta1.ControllerInstallationHealthy, corev1beta1.ConditionTrue},
		{corev1beta1.ControllerInstallationProgressing, corev1beta1.ConditionFalse},
	} {
		condition := corev1beta1.FindCondition(installation.Status.Conditions, wanted.kind)
		switch {
		case condition == nil:
			return fmt.Sprintf("ControllerInstallation %s has no condition %s", installation.Name, wanted.kind)
		case condition.Status != wanted.status:
			return fmt.Sprintf("ControllerInstallation %s has the condition %s %s", installation.Name, wanted.kind, condition.Status)
		}
	}
	return ""
}

// originSeed is the origin of a cluster identity that this flow has set.
const originSeed = constants.RoleSeed
