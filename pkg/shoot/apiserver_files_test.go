package shoot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// TestKubeconfigsOfUsers checks that kubeconfigs of users that make the API server run programs or read files of its Pod do not
// reach the seed, wherever a Shoot names them.
func TestKubeconfigsOfUsers(t *testing.T) {
	const with = `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://hooks.example.org"}}], users: [{name: u, user: {`
	for field, server := range map[string]*corev1beta1.KubeAPIServerConfig{
		"admissionPlugins[0].kubeconfigSecretName": {AdmissionPlugins: []corev1beta1.AdmissionPlugin{
			{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: ptr.To("hooks")}}},
		"structuredAuthorization.kubeconfigs[0].secretName": {StructuredAuthorization: &corev1beta1.StructuredAuthorization{
			ConfigMapName: "config", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: "hooks"}}}},
	} {
		for user, refused := range map[string]bool{
			"token: t": false, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}": true, "tokenFile: /token": true, "client-key: /key": true,
		} {
			in := Inputs{Shoot: &corev1beta1.Shoot{}, UserFiles: userfiles.Files{
				"ConfigMap/config": {ConfigMap: &corev1.ConfigMap{Data: map[string]string{userfiles.KeyConfig: "a: b"}}},
				"Secret/hooks":     {Secret: &corev1.Secret{Data: map[string][]byte{userfiles.KeyKubeconfig: []byte(with + user + "}}]}")}}},
			}}
			in.Shoot.Spec.Kubernetes.KubeAPIServer = server
			_, err := in.userFiles()
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), "spec.kubernetes.kubeAPIServer."+field+": Secret hooks: user \"u\" must not use") {
				t.Errorf("%s with %q: got %v", field, user, err)
			}
		}
	}
}
