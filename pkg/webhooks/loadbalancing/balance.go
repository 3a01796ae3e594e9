package loadbalancing

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

const (
	// secretPrefix is the prefix of the names of Secrets with generic kubeconfigs.
	secretPrefix = "generic-token-kubeconfig"

	keyHosts          = "hosts"
	keyIstioNamespace = "istio-namespace"

	// labelPrefix is the prefix of the labels with which NetworkPolicies allow Pods to connect to a Service. labelValue is
	// their value.
	labelPrefix = "networking.resources.gardener.cloud/"
	labelValue  = "allowed"
)

// gateway is the ingress gateway to which requests for API servers are sent.
type gateway struct {
	// hosts are the host names of the API servers.
	hosts []string
	// namespace is the namespace of the ingress gateway.
	namespace string
}

// usesGenericKubeconfig reports whether a Pod has a volume of a Secret with a generic kubeconfig.
func usesGenericKubeconfig(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(volume corev1.Volume) bool {
		if volume.Secret != nil && strings.HasPrefix(volume.Secret.SecretName, secretPrefix) {
			return true
		}
		return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
			return source.Secret != nil && strings.HasPrefix(source.Secret.Name, secretPrefix)
		})
	})
}

// parse parses the data of the ConfigMap of a namespace. The error rejects the Pod.
func parse(namespace string, data map[string]string) (gateway, error) {
	result := gateway{namespace: strings.TrimSpace(data[keyIstioNamespace])}
	for host := range strings.SplitSeq(data[keyHosts], ",") {
		host = strings.TrimSpace(host)
		switch {
		case host == "" || slices.Contains(result.hosts, host):
		case len(validation.IsDNS1123Subdomain(host)) > 0:
			return gateway{}, admit.Refuse(http.StatusForbidden,
				"the ConfigMap %s in namespace %q has the host %q, which is not a DNS name: its key %q "+
					"must contain the names of the API servers, separated by commas",
				ConfigMapName, namespace, conditiontext.Shorten(host, 100), keyHosts)
		default:
			result.hosts = append(result.hosts, host)
		}
	}
	if len(result.hosts) == 0 {
		return gateway{}, admit.Refuse(http.StatusForbidden,
			"the ConfigMap %s in namespace %q does not contain hosts: set its key %q to the names of the API "+
				"servers, separated by commas, or delete it", ConfigMapName, namespace, keyHosts)
	}
	if result.namespace == "" {
		return gateway{}, admit.Refuse(http.StatusForbidden,
			"the ConfigMap %s in namespace %q does not contain the namespace of the ingress gateway: set its "+
				"key %q to the namespace of the Service %s, or delete it", ConfigMapName, namespace, keyIstioNamespace, ServiceName)
	}
	return result, nil
}

// balance resolves the hosts to the IP addresses of the gateway in a Pod, and allows the Pod to connect to the gateway.
// There is one host alias per address, because the API server merges aliases by address.
func balance(pod *corev1.Pod, target gateway, ips []string) {
	for _, ip := range ips {
		if _, err := netip.ParseAddr(ip); err != nil {
			continue // a headless Service has the address None
		}
		i := slices.IndexFunc(pod.Spec.HostAliases, func(alias corev1.HostAlias) bool { return alias.IP == ip })
		if i < 0 {
			pod.Spec.HostAliases = append(pod.Spec.HostAliases, corev1.HostAlias{IP: ip, Hostnames: slices.Clone(target.hosts)})
			continue
		}
		for _, host := range target.hosts {
			if names := &pod.Spec.HostAliases[i].Hostnames; !slices.Contains(*names, host) {
				*names = append(*names, host)
			}
		}
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, labelKey(target.namespace), labelValue)
}

// labelKey returns the label that allows Pods to connect to the gateway in a namespace. A name that is too long for a
// label is shortened in the same way as in the NetworkPolicies.
func labelKey(namespace string) string {
	const limit, digits = 63, 5
	name := "to-" + namespace + "-" + ServiceName + "-tcp-9443"
	if len(name) <= limit {
		return labelPrefix + name
	}
	hash := sha256.Sum256([]byte(name))
	return labelPrefix + name[:limit-digits-1] + "-" + hex.EncodeToString(hash[:])[:digits]
}
