package secrets

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clockSkew is how long before its creation a certificate becomes valid.
const clockSkew = time.Minute

// certificate returns a new key and its certificate. Keys use the curve P-256. Generating them takes a thousandth of
// the time of RSA keys of the same strength.
func certificate(request Request, now time.Time) (Material, error) {
	config := request.Config
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(request, now)
	parent, signer := template, crypto.Signer(key)
	if config.Kind != KindCA {
		if parent, signer, err = authority(request.Signer.Data); err != nil {
			return nil, fmt.Errorf("sign with secret %s: %w", request.Signer.Name, err)
		}
		if template.NotAfter.After(parent.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	encodedKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encodedKey})
	if config.Kind == KindCA {
		return Material{KeyCACert: certificatePEM, KeyCAKey: keyPEM}, nil
	}
	return Material{
		corev1.TLSCertKey: certificatePEM, corev1.TLSPrivateKeyKey: keyPEM, KeyCACert: request.Signer.Data[KeyCACert],
	}, nil
}

func template(request Request, now time.Time) *x509.Certificate {
	config := request.Config
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(random(16)), BasicConstraintsValid: true,
		Subject:   pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(config.validity()),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, DNSNames: config.DNSNames,
	}
	for _, text := range config.IPAddresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(text))
	}
	switch config.Kind {
	case KindCA:
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature
		template.Subject = pkix.Name{CommonName: request.Secret.Name}
	case KindServer:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case KindServerClient:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	default:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return template
}

// authority parses the certificate and the key of an authority, which may be adopted.
func authority(of Material) (*x509.Certificate, crypto.Signer, error) {
	certificate, err := parse(of[KeyCACert])
	if err != nil {
		return nil, nil, fmt.Errorf("key %s: %w", KeyCACert, err)
	}
	key, err := privateKey(of[KeyCAKey])
	if err != nil {
		return nil, nil, fmt.Errorf("key %s: %w", KeyCAKey, err)
	}
	public, known := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !known || !public.Equal(certificate.PublicKey) {
		return nil, nil, fmt.Errorf("key %s does not belong to the certificate in key %s", KeyCAKey, KeyCACert)
	}
	return certificate, key, nil
}

// privateKey parses a PEM private key in SEC 1, PKCS #1 or PKCS #8 format.
func privateKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it has no PEM block")
	}
	for _, parseKey := range []func([]byte) (any, error){
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) }, x509.ParsePKCS8PrivateKey,
	} {
		if key, err := parseKey(block.Bytes); err == nil {
			if signer, signs := key.(crypto.Signer); signs {
				return signer, nil
			}
		}
	}
	return nil, errors.New("it is not a supported private key")
}

func rsaKey(text []byte) (*rsa.PrivateKey, error) {
	key, err := privateKey(text)
	if err != nil {
		return nil, err
	}
	if key, isRSA := key.(*rsa.PrivateKey); isRSA {
		return key, nil
	}
	return nil, errors.New("it is not an RSA key")
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it has no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

// kubeconfigOf returns a kubeconfig with one cluster, one user and one context, which are all named after the config.
func kubeconfigOf(request Request, data Material) ([]byte, error) {
	config := request.Config
	user := &clientcmdapi.AuthInfo{TokenFile: config.TokenFile}
	switch {
	case config.SignedBy != "":
		user.ClientCertificateData, user.ClientKeyData = data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
	case config.TokensOf != "":
		token, err := tokenOf(request.Tokens, config.Username)
		if err != nil {
			return nil, err
		}
		user.Token = token
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			config.Name: {Server: config.Server, CertificateAuthorityData: request.Trusted[KeyBundleCert]},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{config.Name: user},
		Contexts:       map[string]*clientcmdapi.Context{config.Name: {Cluster: config.Name, AuthInfo: config.Name}},
		CurrentContext: config.Name,
	})
}
