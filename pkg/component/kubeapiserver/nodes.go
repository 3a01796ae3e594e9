package kubeapiserver

import (
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// What only an API server with nodes has.
const (
	// SecretKubeletClient is the config of the certificate with which the API server authenticates itself to kubelets, as kubeletUser.
	SecretKubeletClient = "kube-apiserver-kubelet" //nolint:gosec // a name
	kubeletUser         = "system:kube-apiserver:kubelet"

	nodeAgentAuthorizerName = "node-agent-authorizer"
	// nodeAgentAuthorizerURL is the address of the authorizer in the shoot's resource-manager, in the same namespace.
	nodeAgentAuthorizerURL = "https://gardener-resource-manager/webhooks/auth/nodeagent"
)

// NodeSecrets returns the configs of the certificates that only a shoot with workers needs.
func NodeSecrets() []secrets.Config {
	return []secrets.Config{{
		Name: SecretKubeletClient, Kind: secrets.KindClient, CommonName: kubeletUser, SignedBy: constants.SecretNameCAKubelet, ByOther: true,
	}}
}

// NodeRights returns the rights of the API server in a shoot with workers: it forwards requests to kubelets.
func NodeRights() []client.Object {
	const name = "system:apiserver:kubelet"
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			parts.Rule("", []string{"nodes/log", "nodes/metrics", "nodes/proxy", "nodes/spec", "nodes/stats"}, "*"),
			{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: kubeletUser}},
		},
	}
}

// kubelets returns how the API server connects to kubelets.
func kubelets(values Values) []string {
	if !values.Mounted.hasNodes() {
		return nil
	}
	return []string{
		"--allow-privileged=true", "--kubelet-preferred-address-types=InternalIP,Hostname,ExternalIP",
		"--kubelet-certificate-authority=" + pathKubeletCA + "/" + secrets.KeyBundleCert,
		"--kubelet-client-certificate=" + pathKubeletClient + "/tls.crt", "--kubelet-client-key=" + pathKubeletClient + "/tls.key",
	}
}

// nodeAgentAuthorizer decides about requests of node agents only. It runs in the shoot's resource-manager, which knows the
// machines. Its answers are not cached, because they depend on the state of nodes (Gardener).
func nodeAgentAuthorizer() tree {
	const shortest = "1ns"
	return tree{"type": "Webhook", "name": nodeAgentAuthorizerName, "webhook": tree{
		"authorizedTTL": shortest, "unauthorizedTTL": shortest, "timeout": "10s", "failurePolicy": "Deny",
		"subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
		"matchConditions": []any{tree{"expression": "'" + constants.NodeAgentsGroup + "' in request.groups"}},
		"connectionInfo":  tree{"type": "KubeConfigFile", "kubeConfigFile": pathAuthorizerKubeconfigs + "/" + kubeconfigFile(nodeAgentAuthorizerName)},
	}}
}

// authorizerKubeconfigs returns the kubeconfigs of all authorizers that are webhooks.
func authorizerKubeconfigs(values Values) map[string][]byte {
	if !values.Mounted.hasNodes() {
		return values.Given.AuthorizerKubeconfigs
	}
	all := map[string][]byte{nodeAgentAuthorizerName: []byte(`apiVersion: v1
kind: Config
current-context: authorizer
contexts:
- name: authorizer
  context: {cluster: authorizer, user: authorizer}
clusters:
- name: authorizer
  cluster: {server: ` + nodeAgentAuthorizerURL + `, certificate-authority: ` + pathCA + "/" + secrets.KeyBundleCert + `}
users:
- name: authorizer
  user: {}
`)}
	maps.Copy(all, values.Given.AuthorizerKubeconfigs)
	return all
}
