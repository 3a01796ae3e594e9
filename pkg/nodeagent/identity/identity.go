// Package identity gives the node agent its client certificate. It requests the first one with the bootstrap token of the machine, and the next ones
// with the previous one.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// UserPrefix is followed by the name of the machine, Group is the only group of node agents.
const (
	UserPrefix = "gardener.cloud:node-agent:machine:"
	Group      = "gardener.cloud:node-agents"
)

// kubeconfigMode is the mode of files with credentials.
const kubeconfigMode = 0o600

// ErrNone reports that the node agent has no valid certificate.
var ErrNone = errors.New("the node agent has no valid certificate")

// Files are the files of a machine with its identity.
type Files struct {
	host.Files
	Config *v1alpha1.NodeAgentConfiguration
}

// text returns the content of a file without spaces at its ends.
func (f Files) text(path string) (string, error) {
	content, err := f.Read(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return strings.TrimSpace(string(content)), nil
}

// Machine returns the name of the machine, which user data wrote.
func (f Files) Machine() (string, error) {
	text, err := f.text(paths.MachineName)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(text, "\n")
	if first = strings.TrimSpace(first); first == "" {
		return "", fmt.Errorf("%s is empty: it must have the name of the machine", paths.MachineName)
	}
	return first, nil
}

// Authorities returns the certificates that the API server's certificate is checked with, in PEM.
func (f Files) Authorities() ([]byte, error) {
	content, err := f.Read(f.Config.APIServer.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA of the API server: %w", err)
	}
	return content, nil
}

// Own returns the connection with the certificate of the node agent, or with the kubeconfig that its configuration names. The error is ErrNone if
// there is none, or if its certificate has expired at a time.
func (f Files) Own(now time.Time) (*rest.Config, error) {
	path, given := f.Config.ClientConnection.Kubeconfig, true
	if path == "" {
		path, given = paths.Kubeconfig, false
	}
	content, err := f.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if given {
		return f.limited(config), nil
	}
	certificate, err := Certificate(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if !now.Before(certificate.NotAfter) {
		return nil, fmt.Errorf("%w: that in %s expired at %s", ErrNone, path, certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	// Server and authorities may have changed since the certificate was issued.
	if config.CAData, err = f.Authorities(); err != nil {
		return nil, err
	}
	config.Host = f.Config.APIServer.Server
	return f.limited(config), nil
}

// Bootstrap returns the connection with the bootstrap token of the machine. The error is ErrNone if there is no token any more.
func (f Files) Bootstrap() (*rest.Config, error) {
	token, err := f.text(paths.BootstrapToken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w, and %s does not exist: replace the machine", ErrNone, paths.BootstrapToken)
	}
	if err != nil {
		return nil, err
	}
	authorities, err := f.Authorities()
	if err != nil {
		return nil, err
	}
	return f.limited(&rest.Config{
		Host: f.Config.APIServer.Server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: authorities},
	}), nil
}

func (f Files) limited(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = f.Config.ClientConnection.QPS, int(f.Config.ClientConnection.Burst)
	return config
}

// Store writes the kubeconfig of the node agent. certificate and key are in PEM.
func (f Files) Store(certificate, key []byte) error {
	authorities, err := f.Authorities()
	if err != nil {
		return err
	}
	return f.write(paths.Kubeconfig, authorities, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

func (f Files) write(path string, authorities []byte, user *clientcmdapi.AuthInfo) error {
	const name = "shoot"
	content, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: name,
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: f.Config.APIServer.Server, CertificateAuthorityData: authorities}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
	})
	if err != nil {
		return err
	}
	return f.Write(path, content, kubeconfigMode)
}

// StoreForRenewal writes the kubeconfig with which kubelet requests certificates of another authority: with the certificate that it has. If
// that is gone, the kubeconfig was written before.
func (f Files) StoreForRenewal() error {
	content, err := f.Read(paths.KubeletCertificate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	user := &clientcmdapi.AuthInfo{}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			user.ClientCertificateData = append(user.ClientCertificateData, pem.EncodeToMemory(block)...)
		} else {
			user.ClientKeyData = pem.EncodeToMemory(block)
		}
	}
	authorities, err := f.Authorities()
	if err != nil {
		return err
	}
	return f.write(paths.KubeletBootstrap, authorities, user)
}

// StoreForKubelet writes the kubeconfig with which kubelet requests its first certificate, unless kubelet has one.
func (f Files) StoreForKubelet() error {
	for _, path := range []string{paths.KubeletKubeconfig, paths.KubeletCertificate} {
		if found, err := f.Exists(path); found || err != nil {
			return err
		}
	}
	token, err := f.text(paths.BootstrapToken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the machine has joined before
	}
	if err != nil {
		return err
	}
	authorities, err := f.Authorities()
	if err != nil {
		return err
	}
	return f.write(paths.KubeletBootstrap, authorities, &clientcmdapi.AuthInfo{Token: token})
}

// Joined removes the bootstrap token and the kubeconfig that kubelet does not need any more.
func (f Files) Joined() error {
	return errors.Join(f.Remove(paths.KubeletBootstrap), f.Remove(paths.BootstrapToken))
}

// Certificate returns the client certificate of a connection.
func Certificate(config *rest.Config) (*x509.Certificate, error) {
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		return nil, fmt.Errorf("the client certificate: %w", err)
	}
	block, _ := pem.Decode(config.CertData)
	return x509.ParseCertificate(block.Bytes)
}
