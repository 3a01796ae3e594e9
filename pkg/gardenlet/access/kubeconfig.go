package access

import (
	"bytes"
	"cmp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// contextName is the name of the cluster, user and context in kubeconfigs that gardenlet writes.
const contextName = "garden"

// settings are the parts of the configuration that override a kubeconfig.
type settings struct {
	// address overrides the address of the garden, unless it is empty.
	address string
	// ca overrides the CA of the garden, unless it is nil.
	ca []byte
	// noCA selects the CAs of the system.
	noCA bool
}

// settingsOf returns the settings of a configuration.
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

// apply returns a copy of a client configuration with the configured address and CA.
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

// fixedCA reports whether the configuration defines the CA, so that the garden's own is not used.
func (s settings) fixedCA() bool { return s.noCA || s.ca != nil }

// encode returns a kubeconfig for a client configuration.
func encode(config *rest.Config) ([]byte, error) {
	written := clientcmdapi.NewConfig()
	written.CurrentContext = contextName
	cluster := kubeconfig.ClusterOf(config)
	written.Clusters[contextName] = &cluster
	written.AuthInfos[contextName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		Username: config.Username, Password: config.Password,
	}
	written.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	return clientcmd.Write(*written)
}

// withCertificate returns a client configuration for the same garden with only the given client certificate.
func withCertificate(config *rest.Config, certificate, key []byte) *rest.Config {
	config = rest.AnonymousClientConfig(config)
	config.CertData, config.KeyData = certificate, key
	return config
}
