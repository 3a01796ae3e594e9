// Package pki makes authorities and certificates for tests of TLS.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// PEM is its certificate.
	PEM []byte
}

// New returns an authority.
func New(tb testing.TB, name string) *Authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	kit.Must(tb, err)
	certificate, err := x509.ParseCertificate(raw)
	kit.Must(tb, err)
	return &Authority{certificate: certificate, key: key, PEM: encode("CERTIFICATE", raw)}
}

// Issue returns a certificate and its key in PEM format, for servers with the names or addresses and for clients.
func (a *Authority) Issue(tb testing.TB, commonName string, names ...string) (certificate, key []byte) {
	tb.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(tb, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	kit.Must(tb, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: commonName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	for _, name := range names {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key)
	kit.Must(tb, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	kit.Must(tb, err)
	return encode("CERTIFICATE", raw), encode("PRIVATE KEY", encoded)
}

// Files are the paths of a certificate, its key and the authority that others are verified with.
type Files struct{ Certificate, Key, Authority string }

// Write issues a certificate and writes it into a new directory, with an authority to verify others, which is the same one if it is nil.
func (a *Authority) Write(tb testing.TB, others *Authority, commonName string, names ...string) Files {
	tb.Helper()
	certificate, key := a.Issue(tb, commonName, names...)
	if others == nil {
		others = a
	}
	directory := tb.TempDir()
	files := Files{filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"), filepath.Join(directory, "ca.crt")}
	for path, content := range map[string][]byte{files.Certificate: certificate, files.Key: key, files.Authority: others.PEM} {
		kit.Must(tb, os.WriteFile(path, content, 0o600))
	}
	return files
}

func encode(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}
