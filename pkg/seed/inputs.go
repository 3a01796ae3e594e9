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
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// FlowName is the value of flow.LabelFlow on all that the flow emits.
	FlowName = "seed"
	// minimumVersion is the oldest version of Kubernetes that a seed may have.
	minimumVersion = "1.32"
	// extensionTimeout is how long the flow waits for extensions before it reports an error.
	extensionTimeout = time.Minute
	// again is how often the flow looks whether anything refers to a Seed that is being deleted.
	again = time.Minute
)

// Inputs are all that the flow reads. What is nil or empty, and does not say otherwise, is not known yet: the bundles that need it are held.
type Inputs struct {
	// Owner is the Seed, Namespace that of gardenlet, and Class that of the seed's resource-manager.
	Owner     flow.Owner
	Namespace string
	Class     string
	// Seed as it is declared, and its last operation.
	Seed *corev1beta1.Seed
	// Config of gardenlet.
	Config *gardenletv1alpha1.GardenletConfiguration
	// Version of the program, and Images of the components.
	Version string
	Images  images.Vector

	// KubernetesVersion of the seed.
	KubernetesVersion string
	// Identity of the cluster, and IdentityOrigin who has given it; an empty origin if no ConfigMap says so.
	Identity, IdentityOrigin string
	// IsGarden is set if the seed is the garden, too, and IsShoot if it is a self-hosted Shoot: the operator or gardenadm brings some
	// components then.
	IsGarden, IsShoot bool
	// Nodes is the number of nodes of the seed; 0 if it is not known.
	Nodes int
	// APIServers are the addresses of the seed's API server.
	APIServers []netip.AddrPort
	// HasVerticalPodAutoscaler says whether the seed knows the kind.
	HasVerticalPodAutoscaler *bool
	// Secrets by the names of their configs.
	Secrets map[string]secrets.Item
	// SecretsRenewed is when a Secret has to be renewed; zero for never.
	SecretsRenewed time.Time
	// Extensions are what the garden knows of extensions.
	Extensions *Extensions
	// References are the objects that spec.resources names, by the names there, as the garden has them. One that is not there is not known.
	References map[string]Reference
	// Bucket is the BackupBucket of the Seed.
	Bucket *corev1beta1.BackupBucket

	// Emitted are the bundles of the Seed that exist.
	Emitted []flow.Key
	// Kept are the bundles that leave their objects behind when they are deleted, of those that exist.
	Kept map[flow.Key]bool
	// Deleting is set once the Seed is being deleted, and Users is what refers to it then, for people; nil if that is not known.
	Deleting bool
	Users    *[]string
	// Instances are the objects of kinds that the seed's definitions define, for people; nil if they are not known.
	Instances *[]string

	Now time.Time
}

// Extensions are the extensions of the garden and their installations in the seed.
type Extensions struct {
	Registrations []corev1beta1.ControllerRegistration
	Installations []corev1beta1.ControllerInstallation
}

// Reference is an object that spec.resources names: one of the two, or a WorkloadIdentity.
type Reference struct {
	Secret           *corev1.Secret
	ConfigMap        *corev1.ConfigMap
	WorkloadIdentity *securityv1alpha1.WorkloadIdentity
}

// operatorRuns reports whether the operator of the garden, or gardenadm, brings the components that exist once in a cluster.
func (in Inputs) operatorRuns() bool { return in.IsGarden || in.IsShoot }

func (in Inputs) settings() corev1beta1.SeedSettings {
	return ptr.Deref(in.Seed.Spec.Settings, corev1beta1.SeedSettings{})
}

// autoscaling reports whether the Seed has the Vertical Pod Autoscaler installed.
func (in Inputs) autoscaling() bool {
	setting := in.settings().VerticalPodAutoscaler
	return setting == nil || setting.Enabled
}

// reservations returns the capacities that are reserved.
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

// checkVersion returns why the version of the seed is not supported; empty if it is.
func (in Inputs) checkVersion() string {
	version, err := semver.NewVersion(in.KubernetesVersion)
	if err != nil {
		return fmt.Sprintf("the seed's version of Kubernetes, %q, cannot be read: %v", in.KubernetesVersion, err)
	}
	minimum := semver.MustParse(minimumVersion)
	if version.Major() < minimum.Major() || version.Major() == minimum.Major() && version.Minor() < minimum.Minor() {
		return fmt.Sprintf("the seed has version %s of Kubernetes, and the oldest one that is supported is %s: update it", in.KubernetesVersion, minimumVersion)
	}
	return ""
}

// deadline returns when something that the flow waits for becomes an error: a time after the operation made its last step. It stays one then;
// other errors do not end the time.
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

// required returns the kinds and types of extensions that the Seed itself needs, such as "Extension/filter", sorted.
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

// extensions returns the extensions of the Seed: those that it names, and those that are enabled for all seeds, sorted by type.
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
			automatic := resource.Kind == "Extension" && ptr.Deref(resource.Primary, true) && slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeSeed)
			if automatic && !named[resource.Type] {
				named[resource.Type] = true
				wanted = append(wanted, corev1beta1.Extension{Type: resource.Type})
			}
		}
	}
	slices.SortFunc(wanted, func(a, b corev1beta1.Extension) int { return strings.Compare(a.Type, b.Type) })
	return wanted
}

// missingExtensions returns which of the required extensions are not ready, with the reasons.
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

// notInstalled says why none of some registrations is installed and ready; empty if one is.
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

// notReady says which condition of an installation does not hold; empty if all do.
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

// origin of the cluster's identity if the flow has given it.
const originSeed = constants.RoleSeed
