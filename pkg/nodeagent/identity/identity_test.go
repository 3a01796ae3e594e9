package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

func TestRenewAt(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate := &x509.Certificate{NotBefore: from, NotAfter: from.Add(100 * time.Hour)}
	for spread, want := range map[float64]time.Duration{0: 80 * time.Hour, 0.5: 84 * time.Hour, 1: 88 * time.Hour} {
		if got := RenewAt(certificate, spread).Sub(from).Round(time.Second); got != want {
			t.Errorf("%v: after %s, want %s", spread, got, want)
		}
	}
}

// requests answers with a sequence of states of one request.
type requests struct {
	states  []certificatesv1.CertificateSigningRequestStatus
	created *certificatesv1.CertificateSigningRequest
}

func (r *requests) CreateRequest(_ context.Context, request *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	r.created = request.DeepCopy()
	r.created.Name = "csr"
	return r.created, nil
}

func (r *requests) Request(context.Context, string) (*certificatesv1.CertificateSigningRequest, error) {
	request := r.created.DeepCopy()
	request.Status = r.states[0]
	if len(r.states) > 1 {
		r.states = r.states[1:]
	}
	return request, nil
}

func TestRequest(t *testing.T) {
	r := &requests{states: []certificatesv1.CertificateSigningRequestStatus{{}, {Certificate: []byte("issued")}}}
	certificate, key, err := Request(t.Context(), r, "m", clock.RealClock{})
	if err != nil || string(certificate) != "issued" || !strings.HasPrefix(string(key), "-----BEGIN PRIVATE KEY") {
		t.Fatalf("got %q %v", certificate, err)
	}
	block, _ := pem.Decode(r.created.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || parsed.Subject.String() != "CN=gardener.cloud:node-agent:machine:m,O=gardener.cloud:node-agents" || *r.created.Spec.ExpirationSeconds != 720*3600 {
		t.Errorf("requested is %v: %v", r.created.Spec, err)
	}
	r.states = []certificatesv1.CertificateSigningRequestStatus{{Conditions: []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied, Reason: "RequestDenied", Message: "the Machine does not exist"},
	}}}
	if _, _, err := Request(t.Context(), r, "m", clock.RealClock{}); err == nil || !strings.Contains(err.Error(), "csr is Denied: RequestDenied: the Machine does not exist") {
		t.Errorf("got %v", err)
	}
}

func newFiles(t *testing.T) Files {
	t.Helper()
	f := Files{Files: host.Files{Root: t.TempDir(), NoSync: true}, Config: &v1alpha1.NodeAgentConfiguration{
		APIServer: v1alpha1.APIServer{Server: "https://api.example.com", CAFile: paths.ClusterCA},
	}}
	put(t, f, paths.ClusterCA, "authorities")
	return f
}

func put(t *testing.T, f Files, path, content string) {
	t.Helper()
	if err := f.Write(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issued returns a certificate that is valid until a time, and its key.
func issued(t *testing.T, until time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, NotAfter: until}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), key
}

func TestOwn(t *testing.T) {
	f, now := newFiles(t), time.Now()
	if _, err := f.Own(now); !errors.Is(err, ErrNone) {
		t.Errorf("without a kubeconfig: %v", err)
	}
	certificate, key := issued(t, now.Add(time.Hour))
	if err := f.Store(certificate, key); err != nil {
		t.Fatal(err)
	}
	put(t, f, paths.ClusterCA, "new authorities")
	f.Config.APIServer.Server = "https://moved.example.com"
	own, err := f.Own(now)
	if err != nil || string(own.CAData) != "new authorities" || own.Host != "https://moved.example.com" || string(own.CertData) != string(certificate) {
		t.Errorf("got %+v: %v", own, err)
	}
	if _, err := f.Own(now.Add(2 * time.Hour)); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("with an expired certificate: %v", err)
	}
	put(t, f, paths.Kubeconfig, "broken")
	if _, err := f.Own(now); err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), paths.Kubeconfig) {
		t.Errorf("with a broken kubeconfig: %v", err)
	}
	f.Config.ClientConnection.Kubeconfig = "/etc/missing"
	if _, err := f.Own(now); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("without the kubeconfig that the configuration names: %v", err)
	}
}

func TestBootstrapToken(t *testing.T) {
	f := newFiles(t)
	if _, err := f.Bootstrap(); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "replace the machine") {
		t.Errorf("got %v", err)
	}
	if err := f.StoreForKubelet(); err != nil {
		t.Error(err)
	}
	put(t, f, paths.BootstrapToken, "abcdef.0123456789abcdef\n")
	if config, err := f.Bootstrap(); err != nil || config.BearerToken != "abcdef.0123456789abcdef" || config.Host != "https://api.example.com" {
		t.Errorf("got %+v: %v", config, err)
	}
	if err := f.StoreForKubelet(); err != nil {
		t.Error(err)
	}
	if content, err := f.Read(paths.KubeletBootstrap); err != nil || !strings.Contains(string(content), "abcdef.0123456789abcdef") {
		t.Errorf("kubelet gets %s: %v", content, err)
	}
	if err := f.Joined(); err != nil {
		t.Error(err)
	}
	put(t, f, paths.BootstrapToken, "abcdef.0123456789abcdef\n")
	put(t, f, paths.KubeletKubeconfig, "of kubelet")
	if err := f.StoreForKubelet(); err != nil {
		t.Error(err)
	}
	if found, err := f.Exists(paths.KubeletBootstrap); found || err != nil {
		t.Errorf("a kubelet that has joined gets a bootstrap token: %v", err)
	}
}

func TestMachine(t *testing.T) {
	f := newFiles(t)
	if _, err := f.Machine(); err == nil {
		t.Error("a machine without a name has one")
	}
	for content, want := range map[string]string{"m-1\n": "m-1", "m-2 \nmore": "m-2", "\n": ""} {
		put(t, f, paths.MachineName, content)
		if got, err := f.Machine(); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q: %v", content, got, err)
		}
	}
}
