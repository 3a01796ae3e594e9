package kubeconfig

import (
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ClusterOf returns the address and the CA of the cluster that a client configuration connects to, for a kubeconfig. The result
// contains no credentials. The CA must be loaded (rest.LoadTLSFiles): files are ignored.
func ClusterOf(config *rest.Config) clientcmdapi.Cluster {
	return clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
}
