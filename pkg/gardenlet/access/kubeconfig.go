package access

import (
	"bytes"
	"cmp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// contextName names cluster, user and context of the kubeconfigs that a gardenlet writes.
const contextName = "garden"

// settings are what of the configuration goes into kubeconfigs.
type settings struct {
	// address replaces that of the garden; empty for the one that is used.
	address string
	// ca replaces the CA of the garden; nil for the garden's own.
	ca []byte
	// noCA has the CAs of the system used.
	noCA bool
}

func settingsOf(c *v1alpha1.GardenClientConnection) settings {
	s := settings{}
	if c.GardenClusterAddress != nil {
		s.address = *c.GardenClusterAddress
	}
	switch text := string(bytes.TrimSpace(c.GardenClusterCACert)); text {
	case "":
	case "none", "null":
		s.noCA = true
	default:
		s.ca = c.GardenClusterCACert
	}
	return s
}

// apply returns how to reach the garden with the address and the CA that the configuration asks for.
func (s settings) apply(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = cmp.Or(s.address, config.Host)
	switch {
	case s.noCA:
		config.CAData, config.CAFile = nil, ""
	case s.ca != nil:
		config.CAData, config.CAFile = s.ca, ""
	}
	return config
}

// fixedCA reports whether the configuration says which CA is used, so that the garden is not asked for it.
func (s settings) fixedCA() bool { return s.noCA || s.ca != nil }

// encode returns a kubeconfig.
func encode(config *rest.Config) ([]byte, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.CurrentContext = contextName
	kubeconfig.Clusters[contextName] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
	kubeconfig.AuthInfos[contextName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		Username: config.Username, Password: config.Password,
	}
	kubeconfig.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	return clientcmd.Write(*kubeconfig)
}

// withCertificate returns how to reach the same garden with another client certificate alone.
func withCertificate(config *rest.Config, certificate, key []byte) *rest.Config {
	config = rest.AnonymousClientConfig(config)
	config.CertData, config.KeyData = certificate, key
	return config
}
