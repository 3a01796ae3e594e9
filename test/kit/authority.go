package kit

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

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority is a CA that issues certificates for local servers.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates an Authority.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(tb, err)
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "authority of a test"}, key)
	Must(tb, err)
	return &Authority{certificate, key}
}

// Bundle returns the CA bundle for clients, in PEM.
func (a *Authority) Bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.certificate.Raw})
}

// Issue writes a certificate for 127.0.0.1 that is valid until a time to a directory, as tls.crt and tls.key, and returns
// its serial number.
func (a *Authority) Issue(tb testing.TB, directory string, until time.Time) *big.Int {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(tb, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	Must(tb, err)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, key.Public(), a.key)
	Must(tb, err)
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	Must(tb, err)
	// Write each file atomically. A reader that reads both in between gets a pair that does not match, and reads again
	// later.
	for name, content := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw}), "tls.key": encoded,
	} {
		path := filepath.Join(directory, name)
		Must(tb, os.WriteFile(path+".new", content, 0o600))
		Must(tb, os.Rename(path+".new", path))
	}
	return serial
}
