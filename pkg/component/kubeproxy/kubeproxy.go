// Package kubeproxy contains kube-proxy, which implements Services on the nodes of a shoot. Each pool and version of Kubernetes has a
// DaemonSet of its own, so that each node runs the version of its kubelet. Names and settings are the same as in Gardener.
package kubeproxy

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Image is the name of the image of kube-proxy.
const Image = "kube-proxy"

// Name is the name of the program, its ServiceAccount and its Service.
const Name = "kube-proxy"

const (
	portMetrics = 10249
	portHealth  = 10256

	pathConfig     = "/var/lib/kube-proxy-config"
	pathKubeconfig = "/var/lib/kube-proxy-kubeconfig"
	pathState      = "/var/lib/kube-proxy"
	fileConfig     = "config.yaml"
	fileKubeconfig = "kubeconfig"
	// tokenFile is where Kubernetes mounts the token of a Pod.
	tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path
	// maxConnectionsPerCore is how many connections a node tracks for each of its cores.
	maxConnectionsPerCore = 524288
)

// Pool is a worker pool with a version of Kubernetes.
type Pool struct {
	// Name of the worker pool.
	Name string
	// Version of kubelet, such as 1.37.1.
	Version string
	// Image is the reference of the image named by the constant Image, for this version and the architecture of the pool.
	Image string
}

// Suffix identifies a pool and version in the names of objects.
func (p Pool) Suffix() string { return p.Name + "-v" + p.Version }

// NodeLabels are the labels of the nodes of the pool with the version.
func (p Pool) NodeLabels() map[string]string {
	return map[string]string{constants.LabelWorkerPool: p.Name, constants.LabelWorkerKubernetesVersion: p.Version}
}

// Values are the inputs of the component.
type Values struct {
	// Server is the URL of the API server, CABundle the certificates with which it is verified, in PEM format.
	Server, CABundle string
	// Mode is how Services are implemented.
	Mode corev1beta1.ProxyMode
	// FeatureGates are those of spec.kubernetes.kubeProxy of the Shoot.
	FeatureGates map[string]bool
	// PodNetworks are the networks of Pods in CIDR notation.
	PodNetworks []string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler for each pool. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

// labels are the labels of all objects.
var labels = map[string]string{"app": "kubernetes", "role": "proxy"}

// modes are the modes as kube-proxy names them.
var modes = map[corev1beta1.ProxyMode]string{
	corev1beta1.ProxyModeIPTables: "iptables", corev1beta1.ProxyModeIPVS: "ipvs", corev1beta1.ProxyModeNFTables: "nftables",
}

// Objects returns the objects that all pools share: the configuration, and the rights.
func Objects(values Values) ([]client.Object, error) {
	config, err := configuration(values)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := kubeconfig(values)
	if err != nil {
		return nil, err
	}
	service := parts.SystemService(Name, labels, true, parts.TCPPort("metrics", portMetrics, portMetrics))
	return []client.Object{
		parts.ServiceAccount(metav1.NamespaceSystem, Name, parts.SystemComponent(labels)),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:target:node-proxier", Labels: parts.SystemComponent(labels)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}},
		},
		service, config, kubeconfig,
	}, nil
}

// configuration returns the ConfigMap with the KubeProxyConfiguration.
func configuration(values Values) (*corev1.ConfigMap, error) {
	mode, known := modes[values.Mode]
	if !known {
		return nil, fmt.Errorf("spec.kubernetes.kubeProxy.mode: %q is unknown: choose IPTables, IPVS or NFTables", values.Mode)
	}
	file := map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"clientConnection":   map[string]any{"kubeconfig": pathKubeconfig + "/" + fileKubeconfig},
		"metricsBindAddress": fmt.Sprintf("0.0.0.0:%d", portMetrics),
		"healthzBindAddress": fmt.Sprintf("0.0.0.0:%d", portHealth),
		"mode":               mode,
		"conntrack":          map[string]any{"maxPerCore": maxConnectionsPerCore},
	}
	// With IPVS, traffic of Pods is not masqueraded, so that the network is not needed (Gardener).
	if values.Mode != corev1beta1.ProxyModeIPVS && len(values.PodNetworks) > 0 {
		file["clusterCIDR"] = strings.Join(values.PodNetworks, ",")
	}
	if len(values.FeatureGates) > 0 {
		file["featureGates"] = values.FeatureGates
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of kube-proxy: %w", err)
	}
	return parts.Configuration(metav1.NamespaceSystem, "kube-proxy-config", parts.SystemComponent(labels), fileConfig, string(text))
}

// kubeconfig returns the Secret with the kubeconfig. It contains no credentials: the token is that of the Pod.
func kubeconfig(values Values) (*corev1.Secret, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": Name,
		"clusters": []any{map[string]any{"name": Name, "cluster": map[string]any{
			"server": values.Server, "certificate-authority-data": []byte(values.CABundle),
		}}},
		"users":    []any{map[string]any{"name": Name, "user": map[string]any{"tokenFile": tokenFile}}},
		"contexts": []any{map[string]any{"name": Name, "context": map[string]any{"cluster": Name, "user": Name}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig of kube-proxy: %w", err)
	}
	return parts.SecretFiles(metav1.NamespaceSystem, Name, parts.SystemComponent(labels), map[string][]byte{fileKubeconfig: text})
}
