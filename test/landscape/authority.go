package landscape

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is how long the certificates of a landscape are valid. A landscape is short-lived.
const validity = 90 * 24 * time.Hour

// Authority is a certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates a certificate authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate authority %s: %w", name, err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate authority %s: %w", name, err)
	}
	return &Authority{certificate, key}, nil
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.certificate.Raw})
}

// KeyPEM returns the key of the authority.
func (a *Authority) KeyPEM() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(a.key) }

// Pair is a certificate and its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// Issue issues a certificate for a user with groups and for the addresses and names of a server. Clients and servers can
// use it.
func (a *Authority) Issue(user string, groups []string, addresses []netip.Addr, names ...string) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing a certificate for %s: %w", user, err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return Pair{}, fmt.Errorf("issuing a certificate for %s: %w", user, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: groups}, DNSNames: names,
		NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing a certificate for %s: %w", user, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing a certificate for %s: %w", user, err)
	}
	return Pair{pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw}), encoded}, nil
}

// Kubeconfig returns a kubeconfig that authenticates with a pair.
func (a *Authority) Kubeconfig(server string, pair Pair) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["landscape"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.PEM()}
	config.AuthInfos["landscape"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts["landscape"] = &clientcmdapi.Context{Cluster: "landscape", AuthInfo: "landscape"}
	config.CurrentContext = "landscape"
	return clientcmd.Write(*config)
}

// TokenKeys creates the keys that sign and verify tokens of ServiceAccounts.
func TokenKeys() (private, public []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the key for tokens: %w", err)
	}
	if private, err = keyutil.MarshalPrivateKeyToPEM(crypto.PrivateKey(key)); err != nil {
		return nil, nil, fmt.Errorf("creating the key for tokens: %w", err)
	}
	encoded, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("creating the key for tokens: %w", err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: encoded}), nil
}

// secrets writes files that only root can read.
func secrets(directory string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}
