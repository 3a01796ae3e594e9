// Package shoot implements the flow of Shoots: a function from a Shoot, its Seed and the observed state to the
// ManagedResources of its control plane and its nodes. See docs/shoot.md.
package shoot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

const (
	// FlowName is the value of flow.LabelFlow on all objects that the flow emits.
	FlowName = inventory.FlowShoot
	// identity identifies the flow as the manager of generated Secrets.
	identity = "gardenlet"
	// classSeed is the class of ManagedResources of the seed's resource-manager. Those of the shoot's resource-manager have no class.
	classSeed = "seed"
	// defaultServices is the network of Services if neither the Shoot nor the Seed defines one.
	defaultServices = "100.64.0.0/13"
	// tokenGrace is how long after its renewal time a token is still valid. Tokens are renewed after 80 % of a lifetime of at least 12 hours.
	tokenGrace = 2 * time.Hour
)

// Inputs are the inputs of the flow. Unless its comment differs, an input that is nil or empty is not known yet, and the
// bundles that need it are held.
type Inputs struct {
	// Owner is the Shoot. GardenNamespace is gardenlet's namespace in the seed. Namespace is the namespace of the control plane, which is the
	// technical ID of the Shoot.
	Owner                      flow.Owner
	GardenNamespace, Namespace string
	// Shoot has defaults applied. Project is the name of its Project.
	Shoot        *corev1beta1.Shoot
	Project      string
	Seed         *corev1beta1.Seed
	CloudProfile *corev1beta1.CloudProfile
	// ProfilePending is set if the Shoot uses a NamespacedCloudProfile whose status is not computed yet.
	ProfilePending bool
	// Config is gardenlet's configuration. Version is gardenlet's version.
	Config  *gardenletv1alpha1.GardenletConfiguration
	Version string
	// Images of the components.
	Images images.Vector

	// ClusterIdentity is the identity of the shoot cluster.
	ClusterIdentity string
	// Nodes is the number of nodes of the seed, or 0 if it is not known.
	Nodes int
	// NamespaceExists is set if the namespace exists in the seed. Placement is read from its annotations, and is nil if it has none.
	NamespaceExists bool
	Placement       *Placement
	// NamespaceDeleting is set if the namespace is being deleted, with all Secrets and programs in it.
	NamespaceDeleting bool
	// Secrets are the generated Secrets, by the names of their configs. SecretsRenewed is when the next renewal is due, or zero for never.
	Secrets        map[string]secrets.Item
	SecretsRenewed time.Time
	// SecretsUnusable is why the Secrets could not be ensured in a deletion, or empty.
	SecretsUnusable string
	// LastRenewal is when a Secret was last rotated or renewed, or zero for never.
	LastRenewal time.Time
	// SecretsUnused is set if there are generated Secrets without a config.
	SecretsUnused bool
	// UserFiles are the objects of the garden to which spec.kubernetes.kubeAPIServer refers, by kind and name, such as
	// "ConfigMap/audit". Those that do not exist are missing.
	UserFiles userfiles.Files
	// Registrations are the ControllerRegistrations of the garden, or nil if they are not known.
	Registrations []corev1beta1.ControllerRegistration
	// Mutators are the webhooks of extensions in the seed.
	Mutators []flow.Mutator
	// Asked is when extensions were requested to reconcile this generation of the Shoot. It is Now if they were not.
	Asked time.Time
	// ClusterOf is the generation of the Shoot in the applied Cluster, or empty if it is not known.
	ClusterOf string
	// Unfinished are the operations of extensions in progress, by the names of their bundles.
	Unfinished map[string]Unfinished
	// Unapplied are the bundles of extensions and DNS records without any applied object.
	Unapplied map[string]bool
	// ingressAddresses are those of the load balancer of the addon with the ingress controller.
	ingressAddresses []string
	// RecordsMade are the type and name of each existing DNS record, by the names of their bundles.
	RecordsMade map[string]string
	// Credentials is the object of the garden with the credentials for the infrastructure; empty if the Shoot has none.
	Credentials []reference
	// Machines is what extensions have reported about nodes. ConfigsStamp identifies the OperatingSystemConfigs, and ConfigsKnown is set
	// if node agents have their contents.
	Machines     Machines
	ConfigsStamp string
	ConfigsKnown bool
	// ProxiesUnused are the bundles of previous versions of kube-proxy, and whether no node has them any more. It is not known of missing ones.
	ProxiesUnused map[string]bool
	// Entry is the BackupEntry of the Shoot, or nil if it does not exist or the Seed has no backups.
	Entry *corev1beta1.BackupEntry
	// Bastions are the Bastions in the namespace of the control plane.
	Bastions []Bastion
	// ExposureClass is that of spec.exposureClassName, or nil if the Shoot has none or if it does not exist.
	ExposureClass *corev1beta1.ExposureClass
	// Routes are the recorded routes to the API server.
	Routes exposure.Routes
	// Addresses are the addresses of the Service for DNS records: that of the gateway, or of the API server. They are empty if it has
	// none yet.
	Addresses []string
	// ServiceIPs are the cluster IPs of the API server's Service.
	ServiceIPs []string
	// DefaultDomains of the garden.
	DefaultDomains []Domain
	// IssuerHost is the host of managed issuers of the garden. IssuerProblem is why the garden has none.
	IssuerHost, IssuerProblem string
	// References are the objects of the garden to which the Shoot refers, and the credentials of its DNS services, by kind,
	// namespace and name, such as "Secret garden/dns". Those that do not exist are missing.
	References map[string]Referenced
	// Tokens are the times at which the tokens in access Secrets are renewed, by the names of the Secrets. Secrets without a
	// token are missing.
	Tokens map[string]time.Time
	// ShootManaged is set in a deletion if the shoot's resource-manager has worked on a ManagedResource.
	ShootManaged bool

	// Ledger records that the API server has served, and irreversible steps of the current rotation, change of encryption, or
	// deletion. It is nil if it is not known.
	Ledger *flow.Ledger
	// Emitted are the existing bundles of the Shoot.
	Emitted []flow.Key
	// Unread is why inputs that a forced deletion does not need could not be read, or empty.
	Unread string
	// Phase is whether the control plane stays, leaves the Seed, or has arrived. Move is what is observed of that.
	Phase phase
	Move  Move
	// Stopped is set while no operation runs, but the control plane is maintained: see withoutOperations.
	Stopped bool
	// Deleting is set once the Shoot is being deleted.
	Deleting bool

	Now time.Time
}

// TechnicalID returns the name of the namespace of a control plane. It never changes after the Shoot's status has it.
func TechnicalID(shoot *corev1beta1.Shoot, project string) string {
	return cmp.Or(shoot.Status.TechnicalID, constants.PrefixTechnicalID+project+"--"+shoot.Name)
}

// Hibernated reports whether a Shoot should hibernate.
func Hibernated(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

// hasWorkers reports whether the Shoot declares workers.
func (in Inputs) hasWorkers() bool { return len(in.Shoot.Spec.Provider.Workers) > 0 }

// hibernated reports whether the control plane should hibernate. A deletion wakes it up, and a move wakes up etcd.
func (in Inputs) hibernated() bool {
	return Hibernated(in.Shoot) && !in.Deleting && in.Phase != phaseMigrate
}

// forced reports whether the user forces the deletion, even if the cluster or the infrastructure prevents it. The API
// server of the garden allows this only after the deletion has failed.
func (in Inputs) forced() bool {
	return in.Deleting && isTrue(in.Shoot.Annotations[constants.AnnotationConfirmationForceDeletion])
}

// highlyAvailable reports whether the control plane must tolerate the failure of a node or zone.
func (in Inputs) highlyAvailable() bool {
	plane := in.Shoot.Spec.ControlPlane
	return plane != nil && plane.HighAvailability != nil
}

// server returns spec.kubernetes.kubeAPIServer.
func (in Inputs) server() corev1beta1.KubeAPIServerConfig {
	return ptr.Deref(in.Shoot.Spec.Kubernetes.KubeAPIServer, corev1beta1.KubeAPIServerConfig{})
}

// serviceNetworks returns the networks of Services: of the Shoot, of the Seed's defaults for Shoots, or the default.
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

// replicas returns the replicas of a component whose default is usual. Additional replicas on a single node improve nothing.
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

// image returns the reference of an image for the versions of the seed and the shoot.
func (in Inputs) image(name string) (string, error) {
	seed := strings.TrimPrefix(ptr.Deref(in.Seed.Status.KubernetesVersion, ""), "v")
	image, err := in.Images.Find(name, images.Options{RuntimeVersion: seed, TargetVersion: in.Shoot.Spec.Kubernetes.Version})
	if err != nil {
		return "", err
	}
	return image.Reference, nil
}

// shootImage returns the reference of an image that runs in the shoot.
func (in Inputs) shootImage(name string) (string, error) {
	version := in.Shoot.Spec.Kubernetes.Version
	image, err := in.Images.Find(name, images.Options{RuntimeVersion: version, TargetVersion: version})
	if err != nil {
		return "", err
	}
	return image.Reference, nil
}

// key returns the key of a bundle. The bundle of the namespace is in gardenlet's namespace, all others in that of the control plane.
func (in Inputs) key(name string) flow.Key {
	if name == bundleNamespace {
		return flow.Key{Namespace: in.GardenNamespace, Name: in.Namespace}
	}
	return flow.Key{Namespace: in.Namespace, Name: name}
}

// emitted reports whether the bundle exists.
func (in Inputs) emitted(name string) bool { return slices.Contains(in.Emitted, in.key(name)) }

// hasToken reports whether an access Secret has a valid token.
func (in Inputs) hasToken(secret string) bool {
	renewal, found := in.Tokens[secret]
	return found && in.Now.Before(renewal.Add(tokenGrace))
}

// lacksIssuer returns why the Shoot cannot have the managed issuer that it requests, empty if it can or does not request it.
func (in Inputs) lacksIssuer() string {
	if !issuer.IsManaged(in.Shoot.Annotations) || in.IssuerHost != "" {
		return ""
	}
	return "metadata.annotations[" + constants.AnnotationAuthenticationIssuer + "]: " + in.IssuerProblem
}
