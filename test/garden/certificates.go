package garden

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// proxyName is the name that the aggregator authenticates with.
	proxyName = "aggregator"
	// serverName is the DNS name that the aggregator uses for the API server.
	serverName = serviceName + "." + serviceNamespace + ".svc"
	// Issuer is the issuer of workload identity tokens.
	Issuer = "https://issuer.garden.example"

	validity = 24 * time.Hour
)

// writeCertificates writes the certificates and keys of the aggregator and of the API server, and returns the authority of
// the API server's certificate, in PEM.
func writeCertificates(dir string) ([]byte, error) {
	if _, err := issue(dir, "proxy", &x509.Certificate{
		Subject: pkix.Name{CommonName: proxyName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return nil, err
	}
	authority, err := issue(dir, "server", &x509.Certificate{
		Subject: pkix.Name{CommonName: serverName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{serverName, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the signing key of tokens: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode the signing key of tokens: %w", err)
	}
	return authority, os.WriteFile(filepath.Join(dir, "issuer.key"), encoded, 0o600)
}

// issue writes a certificate, its key and its authority to <name>.crt, <name>.key and <name>-ca.crt.
func issue(dir, name string, template *x509.Certificate) ([]byte, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name + "-ca"}, caKey)
	if err != nil {
		return nil, fmt.Errorf("generate a certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	template.SerialNumber, template.KeyUsage = big.NewInt(1), x509.KeyUsageDigitalSignature
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(validity)
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw})
	for file, content := range map[string][]byte{
		name + "-ca.crt": authority, name + ".key": encoded,
		name + ".crt": pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw}),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return nil, fmt.Errorf("write a certificate: %w", err)
		}
	}
	return authority, nil
}
