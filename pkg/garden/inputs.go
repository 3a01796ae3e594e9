// Package garden contains the flow of a Garden: the bundles that the operator emits into the runtime cluster, which make the virtual garden.
// [Plan] is the table of contents. See docs/garden.md.
package garden

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

const (
	// FlowName is the value of flow.LabelFlow on all emitted objects.
	FlowName = "garden"
	// classRuntime is the class of ManagedResources of the resource-manager of the runtime cluster. Those of the virtual garden have none.
	classRuntime = "seed"
	// prefix is the prefix of the names of the virtual garden's control plane.
	prefix = constants.PrefixVirtualGarden
	// again is how often the flow checks for users of a Garden that is being deleted.
	again = time.Minute
	// tokenGrace is how long after its renewal time a token is still valid. Tokens are renewed after 80 % of a lifetime of at least 12 hours.
	tokenGrace = 2 * time.Hour
)

// Inputs are all inputs of the flow. Unless documented otherwise, a nil or empty field is not known yet, and the bundles that need it are held.
type Inputs struct {
	// Owner is the Garden, and Namespace that of the operator: garden.
	Owner     flow.Owner
	Namespace string
	// Garden with its defaults.
	Garden *operatorv1alpha1.Garden
	// Config of the operator. Version of the program, and Images of the components.
	Config  *v1alpha1.OperatorConfiguration
	Version string
	Images  images.Vector

	// KubernetesVersion of the runtime cluster, and the number of its Nodes; 0 if unknown.
	KubernetesVersion string
	Nodes             int
	// HasVerticalPodAutoscaler reports whether the kind is defined in the runtime cluster.
	HasVerticalPodAutoscaler *bool
	// Secrets by config name. SecretsRenewed is when the next one must be renewed; zero for never.
	Secrets        map[string]secrets.Item
	SecretsRenewed time.Time
	// Files are the objects of the namespace that the Garden refers to, by kind and name, such as "ConfigMap/audit". Missing entries do not
	// exist.
	Files userfiles.Files
	// Bucket is the BackupBucket of the main etcd.
	Bucket *extensionsv1alpha1.BackupBucket
	// Tokens are the times at which the tokens in access Secrets are renewed, by the names of the Secrets.
	Tokens map[string]time.Time
	// Addresses at which clients outside of the runtime cluster reach the virtual garden's API server, and the recorded Routes to it. RecordsReady is
	// set if the existing DNS records are.
	Addresses    []string
	Routes       exposure.Routes
	RecordsReady bool
	// APIServerAddress is the cluster IP of the Service of the garden's own API server.
	APIServerAddress string

	// SeedBundles are the names of the bundles that gardenlet has in the namespace, sorted. There are some if the cluster is also a seed.
	SeedBundles []string

	// Ledger records what happened once: the steps of the current rotations, that the API was deployed, and that a deletion has begun.
	Ledger *flow.Ledger
	// Emitted are the existing bundles of the Garden.
	Emitted []flow.Key
	// Deleting is set if the Garden is being deleted. Users then describes the objects of the virtual garden that still need it; nil if unknown.
	// Served is set if the API of the garden was deployed, and Unused if a former pass has seen that nothing needs it.
	Deleting       bool
	Users          *[]string
	Served, Unused bool

	Now time.Time
}

// key returns the key of a bundle.
func (in Inputs) key(name string) flow.Key { return flow.Key{Namespace: in.Namespace, Name: name} }

func (in Inputs) emitted(name string) bool { return slices.Contains(in.Emitted, in.key(name)) }

// virtual returns spec.virtualCluster.
func (in Inputs) virtual() *operatorv1alpha1.VirtualCluster { return &in.Garden.Spec.VirtualCluster }

// server returns spec.virtualCluster.kubernetes.kubeAPIServer.
func (in Inputs) server() operatorv1alpha1.KubeAPIServerConfig {
	return ptr.Deref(in.virtual().Kubernetes.KubeAPIServer, operatorv1alpha1.KubeAPIServerConfig{})
}

// gardener returns spec.virtualCluster.gardener.gardenerAPIServer.
func (in Inputs) gardener() operatorv1alpha1.GardenerAPIServerConfig {
	return ptr.Deref(in.virtual().Gardener.GardenerAPIServer, operatorv1alpha1.GardenerAPIServerConfig{})
}

func (in Inputs) settings() operatorv1alpha1.Settings {
	return ptr.Deref(in.Garden.Spec.RuntimeCluster.Settings, operatorv1alpha1.Settings{})
}

// autoscaling reports whether the operator installs the Vertical Pod Autoscaler.
func (in Inputs) autoscaling() bool {
	setting := in.settings().VerticalPodAutoscaler
	return setting == nil || ptr.Deref(setting.Enabled, true)
}

// highlyAvailable reports whether the control plane must tolerate the failure of a node or zone.
func (in Inputs) highlyAvailable() bool {
	plane := in.virtual().ControlPlane
	return plane != nil && plane.HighAvailability != nil
}

// replicas returns the replicas of a component whose default is usual. Additional replicas on a single node improve nothing.
func (in Inputs) replicas(usual int32) int32 {
	if in.Nodes == 1 {
		return 1
	}
	return usual
}

// hosts returns the host names of the API server for clients outside of the runtime cluster. The first one is advertised.
func (in Inputs) hosts() []string {
	var hosts []string
	for _, domain := range in.virtual().DNS.Domains {
		hosts = append(hosts, constants.PrefixAPIServerHost+domain.Name, "gardener."+domain.Name)
	}
	return hosts
}

// outsideHost returns the host name that is advertised. A Garden without a domain is only reachable in the runtime cluster.
func (in Inputs) outsideHost() string {
	if hosts := in.hosts(); len(hosts) > 0 {
		return hosts[0]
	}
	return in.insideHost()
}

// insideHost returns the host name of the API server for clients in the runtime cluster.
func (in Inputs) insideHost() string {
	return prefix + kubeapiserver.Name + "." + in.Namespace + ".svc"
}

// image returns the reference of an image for the versions of the runtime cluster and the virtual garden.
func (in Inputs) image(name string) (string, error) {
	image, err := in.Images.Find(name, images.Options{
		RuntimeVersion: strings.TrimPrefix(in.KubernetesVersion, "v"), TargetVersion: in.virtual().Kubernetes.Version,
	})
	return image.Reference, err
}

// hasToken reports whether an access Secret has a valid token.
func (in Inputs) hasToken(secret string) bool {
	renewal, found := in.Tokens[secret]
	return found && in.Now.Before(renewal.Add(tokenGrace))
}

// secret returns the name of the Secret of a config. trusted returns the name of the Secret that its clients trust.
func (in Inputs) secret(config string) string  { return in.Secrets[config].Current.Name }
func (in Inputs) trusted(config string) string { return in.Secrets[config].Trusted() }

// bundle returns the certificates of an authority, in PEM.
func (in Inputs) bundle(authority string) []byte {
	if bundle := in.Secrets[authority].Bundle; bundle != nil {
		return bundle.Data[secrets.KeyBundleCert]
	}
	return nil
}

// advertised returns status.advertisedAddresses.
func (in Inputs) advertised() []corev1beta1.ShootAdvertisedAddress {
	return []corev1beta1.ShootAdvertisedAddress{{Name: constants.AdvertisedAddressVirtualGarden, URL: "https://" + in.outsideHost()}}
}
