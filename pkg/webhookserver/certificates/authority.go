package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The validity of certificates, and how long before their expiry they are renewed. API servers must trust a CA before it
// signs a certificate, so a CA is renewed early. A server certificate is replaced within seconds.
const (
	authorityValidity = 2 * 365 * 24 * time.Hour
	authorityRenewal  = 180 * 24 * time.Hour
	serverValidity    = 90 * 24 * time.Hour
	serverRenewal     = 30 * 24 * time.Hour
	// spread is how long the next CA is part of the configurations before it signs. API servers receive a new CA through
	// watches, usually within seconds.
	spread = 10 * time.Minute
	// clockSkew is how far the clocks of API servers may lag behind.
	clockSkew = time.Hour
)

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// parsePair parses a certificate and a key in PEM. It returns nil if they do not match.
func parsePair(certificate, key []byte) *pair {
	both, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil
	}
	signer, is := both.PrivateKey.(crypto.Signer)
	leaf := leafOf(&both)
	if !is || leaf == nil {
		return nil
	}
	return &pair{leaf, signer}
}

// parseCertificates parses certificates in PEM. It returns nil if the text contains anything else.
func parseCertificates(text []byte) []*x509.Certificate {
	certificates, err := cert.ParseCertsPEM(text)
	if err != nil {
		return nil
	}
	return certificates
}

func encodeCertificates(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, one := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: one.Raw})...)
	}
	return text
}

func (p *pair) encode() (certificate, key []byte, err error) {
	key, err = keyutil.MarshalPrivateKeyToPEM(p.key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key of %s: %w", p.certificate.Subject.CommonName, err)
	}
	return encodeCertificates(p.certificate), key, nil
}

// newAuthority issues a CA certificate, valid from now.
func newAuthority(now time.Time) (*pair, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "resource-manager webhooks " + now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityValidity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, nil)
}

// issue issues a server certificate for names, valid from now. It does not outlast the CA.
func (p *pair) issue(names []string, now time.Time) (*pair, error) {
	until := now.Add(serverValidity)
	if until.After(p.certificate.NotAfter) {
		until = p.certificate.NotAfter
	}
	return newServer(names, now, until, p)
}

// newServer issues a server certificate for names. It is signed by a CA, or self-signed if authority is nil.
func newServer(names []string, now, until time.Time, authority *pair) (*pair, error) {
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "resource-manager"}, DNSNames: names, NotBefore: now.Add(-clockSkew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority)
}

// sign generates a key and issues a certificate for it. It is signed by a CA, or self-signed if authority is nil.
func sign(template *x509.Certificate, authority *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	// Serial numbers have 127 random bits, so they are unpredictable and unique (RFC 5280, 4.1.2.2: at most 20 octets).
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("generate a serial number: %w", err)
	}
	signer, parent := crypto.Signer(key), template
	if authority != nil {
		signer, parent = authority.key, authority.certificate
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return &pair{certificate, key}, nil
}
