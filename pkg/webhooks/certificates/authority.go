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

// How long certificates are valid, and how long before their expiry a new one is made: API servers must know an authority
// before anything is signed by it, a server's certificate is replaced in a moment.
const (
	authorityValidity = 2 * 365 * 24 * time.Hour
	authorityRenewal  = 180 * 24 * time.Hour
	serverValidity    = 90 * 24 * time.Hour
	serverRenewal     = 30 * 24 * time.Hour
	// spread is how long the next authority is in configurations before it signs: API servers get to know new ones by watches, within
	// seconds if all is well.
	spread = 10 * time.Minute
	// clockSkew is how far the clocks of API servers may be behind.
	clockSkew = time.Hour
)

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// parsePair returns nil if a certificate and a key in PEM do not match.
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

// parseCertificates returns the certificates that are in PEM; none if something else is.
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

// newAuthority makes an authority, valid from now.
func newAuthority(now time.Time) (*pair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "resource-manager webhooks " + now.UTC().Format(time.RFC3339)}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityValidity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, nil)
}

// issue makes a certificate for a server with some names, valid from now but not longer than the authority.
func (p *pair) issue(names []string, now time.Time) (*pair, error) {
	until := now.Add(serverValidity)
	if until.After(p.certificate.NotAfter) {
		until = p.certificate.NotAfter
	}
	return newServer(names, now, until, p)
}

// newServer makes a certificate for a server with some names, signed by an authority, or by itself without one.
func newServer(names []string, now, until time.Time, authority *pair) (*pair, error) {
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "resource-manager"}, DNSNames: names, NotBefore: now.Add(-clockSkew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority)
}

// sign makes a key and a certificate for it, signed by an authority, or by itself without one.
func sign(template *x509.Certificate, authority *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	// 127 random bits make numbers that are not guessed, and that no other certificate has (RFC 5280, 4.1.2.2: at most 20 octets).
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
