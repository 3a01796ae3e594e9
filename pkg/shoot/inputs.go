// Package shoot is the flow of Shoots: a function from a Shoot, its Seed and what is observed to the ManagedResources of its control plane. This
// version brings up Shoots without workers. See docs/shoot.md.
package shoot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const (
	// FlowName is the value of flow.LabelFlow on all that the flow emits.
	FlowName = "shoot"
	// identity is that of the flow as the keeper of Secrets.
	identity = "gardenlet"
	// classSeed is the class of what the seed's resource-manager applies. What the shoot's applies has none.
	classSeed = "seed"
	// defaultServices is the range of Services of a Shoot that names none, on a Seed that names none for its Shoots.
	defaultServices = "100.64.0.0/13"
	// tokenGrace is how long after the time of its renewal a token is certainly valid: it is renewed after 80 % of at least 12 hours.
	tokenGrace = 2 * time.Hour
)

// Inputs are all that the flow reads. What is nil or empty, and does not say otherwise, is not known yet: the bundles that need it are held.
type Inputs struct {
	// Owner is the Shoot. GardenNamespace is that of gardenlet in the seed, Namespace that of the control plane: the technical ID of the Shoot.
	Owner                      flow.Owner
	GardenNamespace, Namespace string
	// Shoot with its defaults, the name of its Project, its Seed and its CloudProfile.
	Shoot        *corev1beta1.Shoot
	Project      string
	Seed         *corev1beta1.Seed
	CloudProfile *corev1beta1.CloudProfile
	// Config of gardenlet, and Version of the program.
	Config  *gardenletv1alpha1.GardenletConfiguration
	Version string
	// Images of the components.
	Images images.Vector

	// ClusterIdentity is the identity of the shoot's cluster.
	ClusterIdentity string
	// Nodes is the number of nodes of the seed; 0 if it is not known.
	Nodes int
	// NamespaceExists is set once the seed has the namespace. Placement is in the annotations of that; nil if it has none.
	NamespaceExists bool
	Placement       *Placement
	// Secrets by the names of their configs, and when one of them has to be renewed; zero for never.
	Secrets        map[string]secrets.Item
	SecretsRenewed time.Time
	// LastRenewal is when one of them was rotated or renewed last; zero for never.
	LastRenewal time.Time
	// SecretsUnused is set if there are Secrets that nothing asks for any more.
	SecretsUnused bool
	// Given are the objects of the garden that the Shoot names, by kind and name, such as "ConfigMap/audit". One that is missing is not known.
	Given map[string]Given
	// Registrations are the ControllerRegistrations of the garden; nil if they are not known.
	Registrations []corev1beta1.ControllerRegistration
	// Asked is when extensions were asked for an operation for this generation of the Shoot: now if they were not.
	Asked time.Time
	// ClusterOf is the generation of the Shoot in the Cluster that is applied; empty if it is not known.
	ClusterOf string
	// Unfinished are the operations of extensions that are under way, by the names of their bundles.
	Unfinished map[string]Unfinished
	// RecordsMade are the type and the name of each DNS record that exists, by the names of their bundles.
	RecordsMade map[string]string
	// Bastions are the hosts through which users reach nodes.
	Bastions []Bastion
	// Addresses are those of the API server's Service for DNS records; empty if it has none yet.
	Addresses []string
	// DefaultDomains of the garden.
	DefaultDomains []Domain
	// References are the objects of the garden that the Shoot refers to, and the credentials of its DNS services, such as "Secret garden/dns". One that
	// is missing does not exist.
	References map[string]Referenced
	// Tokens say until when the tokens in access Secrets are valid, by the names of the Secrets. One that has none is missing.
	Tokens map[string]time.Time

	// Ledger is what was done for good by a rotation, a change of the encryption, or the deletion under way; nil if it is not known.
	Ledger *flow.Ledger
	// Emitted are the bundles of the Shoot that exist.
	Emitted []flow.Key
	// Deleting is set once the Shoot is being deleted.
	Deleting bool

	Now time.Time
}

// Given is an object of a user: one of the two.
type Given struct {
	ConfigMap *corev1.ConfigMap
	Secret    *corev1.Secret
}

// TechnicalID returns the name of the namespace of a control plane. A Shoot that has one keeps it.
func TechnicalID(shoot *corev1beta1.Shoot, project string) string {
	return cmp.Or(shoot.Status.TechnicalID, constants.PrefixTechnicalID+project+"--"+shoot.Name)
}

// Hibernated reports whether a Shoot is to hibernate.
func Hibernated(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

// hasWorkers reports whether the Shoot declares workers.
func (in Inputs) hasWorkers() bool { return len(in.Shoot.Spec.Provider.Workers) > 0 }

func (in Inputs) hibernated() bool { return Hibernated(in.Shoot) && !in.Deleting }

// highlyAvailable reports whether a failure of a node or a zone is to be tolerated.
func (in Inputs) highlyAvailable() bool {
	plane := in.Shoot.Spec.ControlPlane
	return plane != nil && plane.HighAvailability != nil
}

func (in Inputs) server() corev1beta1.KubeAPIServerConfig {
	return ptr.Deref(in.Shoot.Spec.Kubernetes.KubeAPIServer, corev1beta1.KubeAPIServerConfig{})
}

// serviceNetworks returns the ranges of Services: those of the Shoot, of the Seed's Shoots, or the usual one.
func (in Inputs) serviceNetworks() []string {
	if networking := in.Shoot.Spec.Networking; networking != nil {
		if services := ptr.Deref(networking.Services, ""); services != "" {
			return []string{services}
		}
	}
	if defaults := in.Seed.Spec.Networks.ShootDefaults; defaults != nil {
		if services := ptr.Deref(defaults.Services, ""); services != "" {
			return []string{services}
		}
	}
	return []string{defaultServices}
}

// replicas returns how many replicas a component has that works with one: Pods of one node do not replace each other.
func (in Inputs) replicas(usual int32) int32 {
	switch {
	case in.hibernated():
		return 0
	case in.Nodes == 1:
		return 1
	}
	return usual
}

// autoscaling reports whether the seed has the Vertical Pod Autoscaler.
func (in Inputs) autoscaling() bool {
	settings := in.Seed.Spec.Settings
	return settings == nil || settings.VerticalPodAutoscaler == nil || settings.VerticalPodAutoscaler.Enabled
}

// image returns an image by its name.
func (in Inputs) image(name string) (string, error) {
	seed := strings.TrimPrefix(ptr.Deref(in.Seed.Status.KubernetesVersion, ""), "v")
	image, err := in.Images.Find(name, images.Options{RuntimeVersion: seed, TargetVersion: in.Shoot.Spec.Kubernetes.Version})
	if err != nil {
		return "", err
	}
	return image.Reference, nil
}

// key returns the key of a bundle: that of the namespace is in the namespace of gardenlet.
func (in Inputs) key(name string) flow.Key {
	if name == bundleNamespace {
		return flow.Key{Namespace: in.GardenNamespace, Name: in.Namespace}
	}
	return flow.Key{Namespace: in.Namespace, Name: name}
}

func (in Inputs) emitted(name string) bool { return slices.Contains(in.Emitted, in.key(name)) }

// hasToken reports whether an access Secret has a token that is valid.
func (in Inputs) hasToken(secret string) bool {
	renewal, found := in.Tokens[secret]
	return found && in.Now.Before(renewal.Add(tokenGrace))
}

// refused returns the fields that ask for what this version does not have, and without which the Shoot would be another one than was asked for.
func (in Inputs) refused() []string {
	var fields []string
	spec := in.Shoot.Spec
	if in.hasWorkers() {
		fields = append(fields, "spec.provider.workers")
	}
	if ptr.Deref(spec.ExposureClassName, "") != "" {
		fields = append(fields, "spec.exposureClassName")
	}
	if in.Shoot.Annotations[constants.AnnotationAuthenticationIssuer] != "" {
		fields = append(fields, "metadata.annotations["+constants.AnnotationAuthenticationIssuer+"]")
	}
	return fields
}
