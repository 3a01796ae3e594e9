package kit

import (
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AccountKubeconfig returns the path of a kubeconfig with a token of a ServiceAccount, in a temporary directory of the test. config
// is a connection to the same cluster, and c its client.
func AccountKubeconfig(tb testing.TB, config *rest.Config, c client.Client, namespace, name string) string {
	tb.Helper()
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Must(tb, c.SubResource("token").Create(tb.Context(), account, token))
	cluster := &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	if !strings.Contains(cluster.Server, "://") {
		cluster.Server = "https://" + cluster.Server
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.CurrentContext = "test"
	kubeconfig.Clusters["test"], kubeconfig.AuthInfos["test"] = cluster, &clientcmdapi.AuthInfo{Token: token.Status.Token}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	Must(tb, clientcmd.WriteToFile(*kubeconfig, file))
	return file
}
