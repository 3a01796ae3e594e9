package shoot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/coredns"
	"github.com/trellis-k8s/trellis/pkg/component/kubeproxy"
	"github.com/trellis-k8s/trellis/pkg/component/metricsserver"
	"github.com/trellis-k8s/trellis/pkg/component/nodelocaldns"
	"github.com/trellis-k8s/trellis/pkg/component/nodeproblemdetector"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
)

func (in Inputs) proxyValues() kubeproxy.Values {
	config := ptr.Deref(in.Shoot.Spec.Kubernetes.KubeProxy, corev1beta1.KubeProxyConfig{})
	return kubeproxy.Values{
		Server: "https://" + in.outsideHost(), CABundle: in.bundle(constants.SecretNameCACluster), Mode: in.proxyMode(),
		FeatureGates: config.FeatureGates, PodNetworks: in.podNetworks(), VerticalPodAutoscaler: in.scales(),
	}
}

// proxyPools returns the pools for kube-proxy. Their images are not set. The error is one of the declared pools.
func (in Inputs) proxyPools() ([]kubeproxy.Pool, error) {
	pools, err := in.pools()
	if err != nil {
		return nil, err
	}
	var of []kubeproxy.Pool
	for _, pool := range pools {
		of = append(of, kubeproxy.Pool{Name: pool.Worker.Name, Version: pool.Version.String()})
	}
	return of, nil
}

// proxy returns what kube-proxy of all pools shares.
func (in Inputs) proxy() ([]client.Object, error) { return kubeproxy.Objects(in.proxyValues()) }

// proxyOf returns the function for kube-proxy of a pool.
func (in Inputs) proxyOf(of kubeproxy.Pool) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		pools, err := in.pools()
		if err != nil {
			return nil, err
		}
		for _, pool := range pools {
			if pool.Worker.Name != of.Name {
				continue
			}
			if of.Image, err = in.imageForNodes(kubeproxy.Image, pool); err != nil {
				return nil, err
			}
		}
		return kubeproxy.PoolObjects(in.proxyValues(), of)
	}
}

// serverHostForPods returns the host name by which Pods of the cluster reach the API server.
func (in Inputs) serverHostForPods() string { return in.outsideHost() }

// dnsSettings returns spec.systemComponents.coreDNS.
func (in Inputs) dnsSettings() (corev1beta1.CoreDNSAutoscalingMode, []string) {
	mode, suffixes := corev1beta1.CoreDNSAutoscalingModeHorizontal, []string(nil)
	components := in.Shoot.Spec.SystemComponents
	if components == nil || components.CoreDNS == nil {
		return mode, suffixes
	}
	if autoscaling := components.CoreDNS.Autoscaling; autoscaling != nil && autoscaling.Mode != "" {
		mode = autoscaling.Mode
	}
	if rewriting := components.CoreDNS.Rewriting; rewriting != nil {
		suffixes = rewriting.CommonSuffixes
	}
	return mode, suffixes
}

func (in Inputs) coreDNS() ([]client.Object, error) {
	values := coredns.Values{ClusterDomain: clusterDomain, Zones: len(in.workerZones()), ServerHost: in.serverHostForPods(), VerticalPodAutoscaler: in.scales()}
	values.Mode, values.CommonSuffixes = in.dnsSettings()
	var err error
	if values.ClusterIPs, err = in.clusterDNS(); err != nil {
		return nil, err
	}
	if values.Image, err = in.shootImage(coredns.Image); err != nil {
		return nil, err
	}
	if values.Mode == corev1beta1.CoreDNSAutoscalingModeClusterProportional {
		if values.ImageAutoscaler, err = in.shootImage(coredns.ImageAutoscaler); err != nil {
			return nil, err
		}
	}
	return coredns.Objects(values)
}

// workerZones returns the zones of all pools, each once.
func (in Inputs) workerZones() []string {
	zones, seen := []string{}, map[string]bool{}
	for _, worker := range in.Shoot.Spec.Provider.Workers {
		for _, zone := range worker.Zones {
			if !seen[zone] {
				zones, seen[zone] = append(zones, zone), true
			}
		}
	}
	return zones
}

// dnsAddresses returns the addresses of DNS servers that Pods may ask: those of the cluster, and those of the caches on nodes.
func (in Inputs) dnsAddresses() ([]string, error) {
	addresses, err := in.clusterDNS()
	return append(addresses, nodelocaldns.AddressIPv4, nodelocaldns.AddressIPv6), err
}

// dnsForKubelet returns the addresses of the DNS servers with which kubelet configures Pods. With IPVS, that is the cache on the node, because the
// cache cannot have the address of the DNS server of the cluster.
func (in Inputs) dnsForKubelet() ([]string, error) {
	if in.withoutNodeLocalDNS() != "" || in.proxyMode() != corev1beta1.ProxyModeIPVS {
		return in.clusterDNS()
	}
	if in.prefersIPv6() {
		return []string{nodelocaldns.AddressIPv6}, nil
	}
	return []string{nodelocaldns.AddressIPv4}, nil
}

// prefersIPv6 reports whether the first IP family of the cluster is IPv6.
func (in Inputs) prefersIPv6() bool {
	networking := in.Shoot.Spec.Networking
	return networking != nil && len(networking.IPFamilies) > 0 && networking.IPFamilies[0] == corev1beta1.IPFamilyIPv6
}

func (in Inputs) nodeLocalDNS() ([]client.Object, error) {
	image, err := in.shootImage(nodelocaldns.Image)
	if err != nil {
		return nil, err
	}
	values := nodelocaldns.Values{
		Image: image, ClusterDomain: clusterDomain, IPVS: in.proxyMode() == corev1beta1.ProxyModeIPVS, IPv6: in.prefersIPv6(),
		Config: *in.Shoot.Spec.SystemComponents.NodeLocalDNS, VerticalPodAutoscaler: in.scales(),
	}
	for _, worker := range in.Shoot.Spec.Provider.Workers {
		values.Pools = append(values.Pools, worker.Name)
	}
	if values.ClusterIPs, err = in.clusterDNS(); err != nil {
		return nil, err
	}
	return nodelocaldns.Objects(values)
}

func (in Inputs) nodeProblemDetector() ([]client.Object, error) {
	image, err := in.shootImage(nodeproblemdetector.Image)
	if err != nil {
		return nil, err
	}
	return nodeproblemdetector.Objects(nodeproblemdetector.Values{
		Image: image, ServerHost: in.serverHostForPods(), VerticalPodAutoscaler: in.scales(),
	})
}

func (in Inputs) metricsServer() ([]client.Object, error) {
	image, err := in.shootImage(metricsserver.Image)
	if err != nil {
		return nil, err
	}
	return metricsserver.Objects(metricsserver.Values{
		Image: image, Certificate: in.Secrets[metricsserver.SecretServer].Current.Data, CABundle: []byte(in.bundle(constants.SecretNameCAMetricsServer)),
		ServerHost: in.serverHostForPods(), Registered: true, VerticalPodAutoscaler: in.scales(),
	})
}

func (in Inputs) scaling() ([]client.Object, error) {
	config := *in.Shoot.Spec.Kubernetes.VerticalPodAutoscaler
	if len(config.MaxAllowed) == 0 {
		config.MaxAllowed = in.biggestMachine()
	}
	values := vpa.ShootValues{
		Namespace: in.Namespace, Config: config, VerticalPodAutoscaler: in.autoscaling(),
		ServerCertificate: in.secret(vpa.SecretServer), Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
	}
	for name, into := range map[string]*string{
		vpa.ImageAdmissionController: &values.AdmissionControllerImage, vpa.ImageRecommender: &values.RecommenderImage, vpa.ImageUpdater: &values.UpdaterImage,
	} {
		image, err := in.image(name)
		if err != nil {
			return nil, err
		}
		*into = image
	}
	return vpa.ControlPlaneObjects(values)
}

// biggestMachine returns the most CPU and memory that machines of the pools have. Pods with larger requests would not be scheduled. It is
// empty if the CloudProfile does not have the machine types.
func (in Inputs) biggestMachine() corev1.ResourceList {
	pools, err := in.pools()
	if err != nil {
		return nil // reported by the parts of nodes
	}
	biggest := corev1.ResourceList{}
	for _, pool := range pools {
		if pool.MachineType == nil {
			return nil
		}
		for name, has := range map[corev1.ResourceName]resource.Quantity{
			corev1.ResourceCPU: pool.MachineType.CPU, corev1.ResourceMemory: pool.MachineType.Memory,
		} {
			if most, found := biggest[name]; !found || most.Cmp(has) < 0 {
				biggest[name] = has
			}
		}
	}
	return biggest
}

func (in Inputs) scalingInShoot() ([]client.Object, error) {
	return vpa.ShootObjects(in.Namespace, []byte(in.bundle(constants.SecretNameCACluster)))
}
