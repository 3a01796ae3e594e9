package kubeapiserver

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Paths of the configuration of egress, and of the certificates for the tunnel to the nodes (Gardener).
const (
	pathEgress    = "/etc/kubernetes/egress"
	pathVPNCA     = "/srv/kubernetes/ca-vpn"
	pathVPNClient = "/etc/srv/kubernetes/envoy"
	fileEgress    = "egress-selector-configuration.yaml"
)

// hasTunnel reports whether the API server reaches nodes, Pods and Services through a tunnel.
func (m Mounted) hasTunnel() bool { return m.VPNCA != "" }

// egressFile returns the file that makes the API server reach the cluster through the tunnel: nodes, Pods, Services, and the webhooks and API
// servers behind Services. It reaches etcd, and webhooks by URL, directly. It returns nil without a tunnel.
func egressFile(values Values) (*corev1.ConfigMap, error) {
	if !values.Mounted.hasTunnel() {
		return nil, nil //nolint:nilnil // no tunnel is not an error
	}
	direct := tree{"proxyProtocol": "Direct"}
	text, err := writeTree(tree{
		"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration", "egressSelections": []any{
			tree{"name": "cluster", "connection": tree{"proxyProtocol": "HTTPConnect", "transport": tree{"tcp": tree{
				"url": vpnseedserver.URL(), "tlsConfig": tree{
					"caBundle":   pathVPNCA + "/" + secrets.KeyBundleCert,
					"clientCert": pathVPNClient + "/tls.crt", "clientKey": pathVPNClient + "/tls.key",
				},
			}}}},
			tree{"name": "controlplane", "connection": direct}, tree{"name": "etcd", "connection": direct},
		},
	})
	if err != nil {
		return nil, err
	}
	return parts.Files(values.Namespace, "kube-apiserver-egress-selector-config", selector, map[string]string{fileEgress: text})
}

// egress returns the flag for it.
func egress(values Values) []string {
	if !values.Mounted.hasTunnel() {
		return nil
	}
	return []string{"--egress-selector-config-file=" + pathEgress + "/" + fileEgress}
}
