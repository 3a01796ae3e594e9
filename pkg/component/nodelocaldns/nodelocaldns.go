// Package nodelocaldns contains the DNS cache on each node of a shoot. Names and settings are the same as in Gardener.
package nodelocaldns

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/coredns"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Image is the name of the image.
const Image = "node-local-dns"

// Name is the name of the component.
const Name = "node-local-dns"

// Addresses of the cache on each node.
const (
	AddressIPv4 = "169.254.20.10"
	AddressIPv6 = "fd30:1319:f1e:230b::1"
)

const (
	upstream        = "kube-dns-upstream"
	portMetrics     = 9253
	portErrors      = 9353
	portHealth      = 8099
	pathConfig      = "/etc/coredns"
	pathCustom      = "/etc/coredns/custom"
	fileBase        = "Corefile.base"
	fileConfig      = "/etc/Corefile"
	pathLock        = "/run/xtables.lock"
	clusterDNS      = "__PILLAR__CLUSTER__DNS__"      // the program fills in the address of the Service for upstream requests
	upstreamServers = "__PILLAR__UPSTREAM__SERVERS__" // the program fills in the DNS servers of the node
)

// Values are the inputs of the component.
type Values struct {
	// Image is the reference of the image named by the constant Image.
	Image string
	// Pools are the names of the worker pools.
	Pools []string
	// ClusterDomain is the domain of Services, ClusterIPs are the addresses of the DNS server of the cluster.
	ClusterDomain string
	ClusterIPs    []string
	// IPVS is set if kube-proxy uses IPVS. Then the cache cannot have the address of the DNS server of the cluster, and kubelet configures Pods with
	// the own address of the cache.
	IPVS bool
	// IPv6 is set if the first IP family of the cluster is IPv6.
	IPv6 bool
	// Config is spec.systemComponents.nodeLocalDNS of the Shoot.
	Config corev1beta1.NodeLocalDNS
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler for each pool. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

var labels = map[string]string{"k8s-app": Name}

// address returns the address of the cache.
func (v Values) address() string {
	if v.IPv6 {
		return AddressIPv6
	}
	return AddressIPv4
}

// addresses returns all addresses on which the cache answers.
func (v Values) addresses() []string {
	if v.IPVS {
		return []string{v.address()}
	}
	return append([]string{v.address()}, v.ClusterIPs...)
}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	config, err := parts.Configuration(metav1.NamespaceSystem, Name, parts.SystemComponent(labels), "Corefile", corefile(values))
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		parts.ServiceAccount(metav1.NamespaceSystem, Name, parts.SystemComponent(labels)), config, service(),
	}
	for _, pool := range values.Pools {
		name := Name + "-" + pool
		daemon, err := daemon(values, pool, config.Name).DaemonSet()
		if err != nil {
			return nil, err
		}
		objects = append(objects, daemon)
		if values.VerticalPodAutoscaler {
			objects = append(objects, parts.DaemonAutoscaler(name, name, "node-cache", "20Mi"))
		}
	}
	return objects, nil
}

// service returns the Service by which the cache reaches the DNS server of the cluster, whose own address the cache may have.
func service() *corev1.Service {
	dns := func(name string, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: 53, TargetPort: intstr.FromInt32(coredns.PortServer), Protocol: protocol}
	}
	service := parts.SystemService(upstream, coredns.Selector, false, dns("dns", corev1.ProtocolUDP), dns("dns-tcp", corev1.ProtocolTCP))
	service.Labels = parts.SystemComponent(map[string]string{"k8s-app": upstream})
	return service
}

func daemon(values Values, pool, config string) parts.Daemon {
	address := values.address()
	probe := parts.HTTPProbe("/health", portHealth, corev1.URISchemeHTTP)
	probe.HTTPGet.Host, probe.InitialDelaySeconds = address, 60
	volume := parts.ConfigVolume("config", config)
	volume.ConfigMap.Items = []corev1.KeyToPath{{Key: "Corefile", Path: fileBase}}
	custom := parts.ConfigVolume("custom", coredns.ConfigMapCustom)
	custom.ConfigMap.Optional = ptr.To(true)
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("25m", "25Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "200Mi")[corev1.ResourceMemory]}
	}
	return parts.Daemon{
		Name: Name + "-" + pool, Selector: parts.Merge(labels, map[string]string{constants.LabelWorkerPool: pool}),
		PodLabels: parts.NodeCritical(map[string]string{constants.LabelNetworkPolicyToDNS: constants.NetworkPolicyAllowed}), PriorityClass: parts.PriorityNodeCritical, ServiceAccount: Name,
		NodeSelector: map[string]string{constants.LabelNodeLocalDNSEnabled: "true", constants.LabelWorkerPool: pool},
		HostNetwork:  true, DNSPolicy: corev1.DNSDefault, // not itself
		Containers: []corev1.Container{{
			Name: "node-cache", Image: values.Image, Args: []string{
				"-localip", strings.Join(values.addresses(), ","), "-conf", fileConfig, "-upstreamsvc", upstream, "-health-port", "8099",
			},
			Ports: []corev1.ContainerPort{
				{Name: "metrics", ContainerPort: portMetrics, HostPort: portMetrics, Protocol: corev1.ProtocolTCP},
				{Name: "errormetrics", ContainerPort: portErrors, HostPort: portErrors, Protocol: corev1.ProtocolTCP},
			},
			LivenessProbe: probe, Resources: requirements,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "xtables-lock", MountPath: pathLock}, parts.Mount("config", pathConfig), parts.Mount("custom", pathCustom),
			},
		}},
		Volumes: []corev1.Volume{parts.HostPath("xtables-lock", pathLock, corev1.HostPathFileOrCreate), volume, custom},
	}
}
