package kubeconfig

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

func newAuthority(t *testing.T) (Authority, *x509.Certificate) {
	t.Helper()
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "ca-client"}, signer.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	return Authority{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), Key: key}, ca
}

func TestSign(t *testing.T) {
	t.Parallel()
	authority, ca := newAuthority(t)
	now := ca.NotBefore.Add(time.Hour)
	credentials, err := Sign(authority, Subject{User: "gardener.cloud:admin:jane", Group: "gardener.cloud:project:admins"}, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := cert.ParseCertsPEM(credentials.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	certificate := certificates[0]
	if certificate.Subject.CommonName != "gardener.cloud:admin:jane" || strings.Join(certificate.Subject.Organization, ",") != "gardener.cloud:project:admins" {
		t.Errorf("unexpected subject %s", certificate.Subject)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	at := func(when time.Time) error {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: when, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	if err := at(now.Add(59 * time.Minute)); err != nil {
		t.Error(err)
	}
	if at(now.Add(61*time.Minute)) == nil {
		t.Error("the certificate does not expire")
	}
	if !credentials.NotAfter.Equal(certificate.NotAfter) {
		t.Errorf("NotAfter is %s, and %s in the certificate", credentials.NotAfter, certificate.NotAfter)
	}
}

func TestSignNeverOutlivesTheAuthority(t *testing.T) {
	t.Parallel()
	authority, ca := newAuthority(t)
	credentials, err := Sign(authority, Subject{User: "u", Group: "g"}, 24*time.Hour, ca.NotAfter.Add(-time.Hour))
	if err != nil || credentials.NotAfter.After(ca.NotAfter) {
		t.Errorf("valid until %s, the authority until %s; error %v", credentials.NotAfter, ca.NotAfter, err)
	}
	if _, err := Sign(authority, Subject{User: "u", Group: "g"}, time.Hour, ca.NotAfter.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired authority signed: %v", err)
	}
}

func TestSignRefusesAnAuthorityThatIsIncomplete(t *testing.T) {
	t.Parallel()
	authority, ca := newAuthority(t)
	other, _ := newAuthority(t)
	for name, bad := range map[string]Authority{
		"empty":              {},
		"no key":             {Certificate: authority.Certificate},
		"another one's key":  {Certificate: authority.Certificate, Key: other.Key},
		"not a certificate":  {Certificate: []byte("x"), Key: authority.Key},
		"key in place of it": {Certificate: authority.Key, Key: authority.Key},
	} {
		_, err := Sign(bad, Subject{User: "u"}, time.Hour, ca.NotBefore.Add(time.Hour))
		if err == nil {
			t.Errorf("%s: a certificate was signed", name)
		} else if bytes.Contains([]byte(err.Error()), bad.Key) && len(bad.Key) > 0 {
			t.Errorf("%s: the error contains the key", name)
		}
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	encoded, err := Build("garden-a--s", []Address{
		{Name: "external", URL: "https://api.example.com", CA: []byte("ca")}, {Name: "wildcard-tls-seed-bound", URL: "https://seed.example.com"},
	}, Credentials{Certificate: []byte("c"), Key: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "garden-a--s-external" || len(config.Contexts) != 2 {
		t.Errorf("unexpected contexts %v, current %s", config.Contexts, config.CurrentContext)
	}
	if got := config.Clusters["garden-a--s-external"]; got.Server != "https://api.example.com" || string(got.CertificateAuthorityData) != "ca" {
		t.Errorf("unexpected cluster %+v", got)
	}
	if got := config.Clusters["garden-a--s-wildcard-tls-seed-bound"]; len(got.CertificateAuthorityData) != 0 {
		t.Errorf("unexpected cluster %+v", got)
	}
	if user := config.AuthInfos["garden-a--s"]; string(user.ClientCertificateData) != "c" || string(user.ClientKeyData) != "k" {
		t.Error("the user lacks the credentials")
	}
	if _, err := Build("x", nil, Credentials{}); err == nil {
		t.Error("a kubeconfig without an address was built")
	}
}
