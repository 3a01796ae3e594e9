// Package kubeconfig issues short-lived client certificates for shoots, and kubeconfigs that contain them.
package kubeconfig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clockSkew is how far the clock of a shoot's API server may lag behind, without rejecting a new certificate.
const clockSkew = 5 * time.Minute

// Subject is the identity of a certificate, as Kubernetes reads it from a client certificate.
type Subject struct {
	User  string
	Group string
}

// Authority is a CA that signs client certificates. Both fields are in PEM.
type Authority struct {
	Certificate, Key []byte
}

// Address is an address of a shoot's API server.
type Address struct {
	// Name is the name of the advertised address, such as external.
	Name string
	// URL is the URL of the API server.
	URL string
	// CA verifies the server's certificate, in PEM. If it is empty, the client uses its own trusted CAs.
	CA []byte
}

// Credentials are a client certificate and its private key, in PEM.
type Credentials struct {
	Certificate, Key []byte
	// NotAfter is when the certificate expires.
	NotAfter time.Time
}

// Sign issues a client certificate that is valid from now for a duration, but not longer than the certificate of the
// authority. It fails if certificate and key of the authority do not match, or if the authority has expired.
func Sign(authority Authority, subject Subject, validity time.Duration, now time.Time) (Credentials, error) {
	pair, err := tls.X509KeyPair(authority.Certificate, authority.Key)
	if err != nil {
		return Credentials{}, fmt.Errorf("read the client CA: %w", err)
	}
	ca, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return Credentials{}, fmt.Errorf("read the client CA's certificate: %w", err)
	}
	notAfter := now.Add(validity)
	if ca.NotAfter.Before(notAfter) {
		notAfter = ca.NotAfter
	}
	if !notAfter.After(now) {
		return Credentials{}, fmt.Errorf("the client CA expired at %s: rotate the certificate authorities of the shoot",
			ca.NotAfter.UTC().Format(time.RFC3339))
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return Credentials{}, errors.New("the client CA's key cannot sign")
	}
	return sign(ca, signer, subject, now, notAfter)
}

func sign(ca *x509.Certificate, signer crypto.Signer, subject Subject, now, notAfter time.Time) (Credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Credentials{}, fmt.Errorf("generate a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Credentials{}, fmt.Errorf("generate a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: subject.User, Organization: []string{subject.Group}},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), signer)
	if err != nil {
		return Credentials{}, fmt.Errorf("sign the client certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Credentials{}, fmt.Errorf("encode the key: %w", err)
	}
	return Credentials{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		NotAfter:    notAfter.Truncate(time.Second), // the precision of certificates
	}, nil
}

// Build returns a kubeconfig with one cluster and one context for each address. The first context is the current one.
// name is the name of the user, and the prefix of the other names.
func Build(name string, addresses []Address, credentials Credentials) ([]byte, error) {
	if len(addresses) == 0 {
		return nil, errors.New("build a kubeconfig: there is no address")
	}
	config := clientcmdapi.NewConfig()
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: credentials.Certificate, ClientKeyData: credentials.Key}
	for _, address := range addresses {
		entry := name + "-" + address.Name
		config.Clusters[entry] = &clientcmdapi.Cluster{Server: address.URL, CertificateAuthorityData: address.CA}
		config.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: name}
	}
	config.CurrentContext = name + "-" + addresses[0].Name
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return encoded, nil
}
