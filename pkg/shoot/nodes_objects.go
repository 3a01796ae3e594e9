package shoot

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/nodeagent"
	"github.com/trellis-k8s/trellis/pkg/component/operatingsystemconfig"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// Images for nodes.
const (
	imageNodeAgent = "gardener-node-agent"
	imageKubelet   = "kubelet"
	imagePause     = "pause"
)

// clusterDomain is the DNS domain of shoots (Gardener).
const clusterDomain = "cluster.local"

// dnsOffset is the position of the DNS server in the network of Services (Gardener).
const dnsOffset = 10

// ask sets the name of an extension object, and requests an operation for each generation of the Shoot.
func (in Inputs) ask(object client.Object, name string) {
	object.SetNamespace(in.Namespace)
	object.SetName(name)
	flow.AskExtension(object, constants.OperationReconcile, in.Asked)
}

// cloudProviderRef refers to the Secret with the credentials for the infrastructure.
func (in Inputs) cloudProviderRef() corev1.SecretReference {
	return corev1.SecretReference{Namespace: in.Namespace, Name: constants.SecretNameCloudProvider}
}

func (in Inputs) cloudProvider() ([]client.Object, error) {
	key := client.ObjectKey{Namespace: in.Namespace, Name: constants.SecretNameCloudProvider}
	secret, _, err := in.credentialsFor(in.Credentials[0], key)
	if err != nil {
		return nil, err
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, constants.LabelGardenPurpose, constants.SecretNameCloudProvider)
	return []client.Object{secret}, nil
}

func (in Inputs) infrastructure() ([]client.Object, error) {
	object := &extensionsv1alpha1.Infrastructure{}
	in.ask(object, in.Shoot.Name)
	object.Spec.Type, object.Spec.ProviderConfig = in.Shoot.Spec.Provider.Type, in.Shoot.Spec.Provider.InfrastructureConfig
	object.Spec.Region, object.Spec.SecretRef, object.Spec.SSHPublicKey = in.Shoot.Spec.Region, in.cloudProviderRef(), in.sshKey()
	return []client.Object{object}, nil
}

// infrastructureStatus returns what the extension reported for others.
func (in Inputs) infrastructureStatus() *runtime.RawExtension {
	if in.Machines.Infrastructure == nil {
		return nil
	}
	return in.Machines.Infrastructure.ProviderStatus
}

func (in Inputs) controlPlaneObject() ([]client.Object, error) {
	object := &extensionsv1alpha1.ControlPlane{}
	in.ask(object, in.Shoot.Name)
	object.Spec.Type, object.Spec.ProviderConfig = in.Shoot.Spec.Provider.Type, in.Shoot.Spec.Provider.ControlPlaneConfig
	object.Spec.Region, object.Spec.SecretRef, object.Spec.InfrastructureProviderStatus = in.Shoot.Spec.Region, in.cloudProviderRef(), in.infrastructureStatus()
	return []client.Object{object}, nil
}

func (in Inputs) network() ([]client.Object, error) {
	networking := in.Shoot.Spec.Networking
	if networking == nil || ptr.Deref(networking.Type, "") == "" {
		return nil, errors.New("spec.networking.type is required for a Shoot with workers")
	}
	object := &extensionsv1alpha1.Network{}
	in.ask(object, in.Shoot.Name)
	object.Spec.Type, object.Spec.ProviderConfig = *networking.Type, networking.ProviderConfig
	object.Spec.PodCIDR, object.Spec.ServiceCIDR = in.podNetworks()[0], in.serviceNetworks()[0]
	for _, family := range networking.IPFamilies {
		object.Spec.IPFamilies = append(object.Spec.IPFamilies, extensionsv1alpha1.IPFamily(family))
	}
	return []client.Object{object}, nil
}

// operatingSystem returns the function for the OperatingSystemConfigs of a pool.
func (in Inputs) operatingSystem(pool workerpool.Pool) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		values, err := in.operatingSystemValues(pool)
		if err != nil {
			return nil, err
		}
		provision, reconcile, err := operatingsystemconfig.Objects(values)
		if err != nil {
			return nil, err
		}
		for _, config := range []*extensionsv1alpha1.OperatingSystemConfig{provision, reconcile} {
			in.ask(config, config.Name)
		}
		return []client.Object{provision, reconcile}, nil
	}
}

func (in Inputs) operatingSystemValues(pool workerpool.Pool) (operatingsystemconfig.Values, error) {
	values := operatingsystemconfig.Values{
		Namespace: in.Namespace, Pool: pool, ClusterDomain: clusterDomain, SSHKeys: in.sshKeys(), NodeAgentVersion: in.Version,
		CABundle: in.bundle(constants.SecretNameCACluster), KubeletCA: in.bundle(constants.SecretNameCAKubelet),
		ExtraCAs: ptr.Deref(in.CloudProfile.Spec.CABundle, "") + "\n" + ptr.Deref(pool.Worker.CABundle, ""), WithoutKubeProxy: !in.proxyEnabled(),
	}
	grace := kubecontrollermanager.DefaultMonitorGracePeriod
	if config := in.Shoot.Spec.Kubernetes.KubeControllerManager; config != nil && config.NodeMonitorGracePeriod != nil {
		grace = config.NodeMonitorGracePeriod.Duration
	}
	values.MonitorGracePeriod = int(grace.Seconds())
	if networking := in.Shoot.Spec.Networking; networking != nil && len(networking.IPFamilies) > 0 {
		values.PreferIPv6 = networking.IPFamilies[0] == corev1beta1.IPFamilyIPv6
	}
	for name, into := range map[string]*string{
		imageNodeAgent: &values.Images.NodeAgent, imageKubelet: &values.Images.Kubelet, imagePause: &values.Images.Pause,
	} {
		image, err := in.imageForNodes(name, pool)
		if err != nil {
			return values, err
		}
		*into = image
	}
	var err error
	if values.ClusterDNS, err = in.dnsForKubelet(); err != nil {
		return values, err
	}
	values.NodeAgent, err = nodeagent.Configuration(nodeagent.Values{
		Server: "https://" + in.outsideHost(), SecretName: pool.Key(), KubernetesVersion: pool.Version.String(),
		DataVolume: dataVolume(pool.Worker),
	})
	return values, err
}

// dataVolume returns the size of the data volume of kubelet, empty if the pool has none.
func dataVolume(worker *corev1beta1.Worker) string {
	for _, volume := range worker.DataVolumes {
		if worker.KubeletDataVolumeName != nil && volume.Name == *worker.KubeletDataVolumeName {
			return volume.VolumeSize
		}
	}
	return ""
}

// clusterDNS returns the addresses of the DNS servers of the cluster.
func (in Inputs) clusterDNS() ([]string, error) {
	var addresses []string
	for _, network := range in.serviceNetworks() {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return nil, fmt.Errorf("the network of Services %q: %w", network, err)
		}
		address := prefix.Masked().Addr()
		for range dnsOffset {
			address = address.Next()
		}
		addresses = append(addresses, address.String())
	}
	return addresses, nil
}

// worker returns the Worker, with all pools.
func (in Inputs) worker() ([]client.Object, error) {
	pools, err := in.pools()
	if err != nil {
		return nil, err
	}
	object := &extensionsv1alpha1.Worker{}
	in.ask(object, in.Shoot.Name)
	object.Spec.Type, object.Spec.Region, object.Spec.SecretRef = in.Shoot.Spec.Provider.Type, in.Shoot.Spec.Region, in.cloudProviderRef()
	object.Spec.SSHPublicKey, object.Spec.InfrastructureProviderStatus = in.sshKey(), in.infrastructureStatus()
	for _, pool := range pools {
		userData := in.Machines.UserData[pool.Key()]
		if userData == "" {
			return nil, fmt.Errorf("the extension for the operating system %s reported no Secret with user data of pool %s", pool.Worker.Machine.Image.Name, pool.Worker.Name)
		}
		var before *extensionsv1alpha1.WorkerPool
		if present, exists := in.Machines.Pools[pool.Worker.Name]; exists {
			before = &present
		}
		object.Spec.Pools = append(object.Spec.Pools, pool.Entry(userData, before))
	}
	return []client.Object{object}, nil
}

// containerRuntime returns the function for a container runtime of a pool.
func (in Inputs) containerRuntime(worker corev1beta1.Worker, of corev1beta1.ContainerRuntime) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		object := &extensionsv1alpha1.ContainerRuntime{}
		in.ask(object, of.Type+"-"+worker.Name)
		object.Spec.Type, object.Spec.ProviderConfig = of.Type, of.ProviderConfig
		object.Spec.BinaryPath = "/var/bin/containerruntimes"
		object.Spec.WorkerPool = extensionsv1alpha1.ContainerRuntimeWorkerPool{
			Name: worker.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{
				constants.LabelWorkerPool: worker.Name, constants.LabelWorkerPoolDeprecated: worker.Name,
			}},
		}
		return []client.Object{object}, nil
	}
}

// nodeAgent returns the Secrets from which node agents read what they apply, and the rights of kubelets to bootstrap themselves.
func (in Inputs) nodeAgent() ([]client.Object, error) {
	var configs []nodeagent.Config
	pools, err := in.pools()
	if err != nil {
		return nil, err
	}
	for _, pool := range pools {
		if _, found := in.Machines.Configs[pool.Key()]; !found {
			return nil, fmt.Errorf("the OperatingSystemConfig of pool %s has not been read", pool.Worker.Name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in.Machines.Configs)) { // also those of nodes that are replaced
		config := in.Machines.Configs[key]
		configs = append(configs, nodeagent.Config{Key: key, Pool: config.Labels[constants.LabelWorkerPool], Object: config})
	}
	return nodeagent.Objects(configs)
}

// imageForNodes returns the reference of an image with programs for the nodes of a pool.
func (in Inputs) imageForNodes(name string, pool workerpool.Pool) (string, error) {
	version := pool.Version.String()
	image, err := in.Images.Find(name, images.Options{RuntimeVersion: version, TargetVersion: version, Architecture: pool.Architecture()})
	if err != nil {
		return "", err
	}
	return image.Reference, nil
}

func (in Inputs) apiServerRights() ([]client.Object, error) { return kubeapiserver.NodeRights(), nil }

// adjustKind makes each change of a bundle trigger the extension, and its health depend on the result.
func (in Inputs) adjustKind(kind string) func(*flow.Bundle) {
	return func(bundle *flow.Bundle) {
		in.adjustExtension(bundle)
		bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{flow.ExtensionHealth(kind)}
	}
}

// sshKey returns the public key with which users connect to nodes, empty if nodes accept no SSH connections.
func (in Inputs) sshKey() []byte {
	if !in.sshAccess() {
		return nil
	}
	return in.Secrets[constants.SecretNameSSHKeyPair].Current.Data[secrets.KeyRSAPublic]
}

// sshKeys returns the public keys that nodes accept, one a line: the current one, and the previous one until the next rotation.
func (in Inputs) sshKeys() string {
	keys := strings.TrimSpace(string(in.sshKey()))
	if old := in.Secrets[constants.SecretNameSSHKeyPair].Old; old != nil && keys != "" {
		keys += "\n" + strings.TrimSpace(string(old.Data[secrets.KeyRSAPublic]))
	}
	return keys
}

// bundle returns the certificates of an authority that clients trust, in PEM format.
func (in Inputs) bundle(authority string) string {
	item := in.Secrets[authority]
	if item.Bundle != nil {
		return strings.TrimSpace(string(item.Bundle.Data[secrets.KeyBundleCert])) + "\n"
	}
	return strings.TrimSpace(string(item.Current.Data[secrets.KeyCACert])) + "\n"
}
