package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// newCertificate returns a certificate that is valid between the given times.
func newCertificate(t *testing.T, from, to time.Time) *x509.Certificate {
	t.Helper()
	certificate, _ := newPair(t, from, to)
	return certificate
}

// newPair returns a certificate, and its PEM encoding with the key.
func newPair(t *testing.T, from, to time.Time) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, encoded
}

func TestRenewAt(t *testing.T) {
	validity := &v1alpha1.KubeconfigValidity{AutoRotationJitterPercentageMin: ptr.To[int32](70), AutoRotationJitterPercentageMax: ptr.To[int32](90)}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moments := map[time.Time]bool{}
	for range 10 {
		certificate := newCertificate(t, from, from.Add(100*time.Hour))
		at := renewAt(certificate, validity)
		if at.Before(from.Add(70*time.Hour)) || at.After(from.Add(90*time.Hour)) {
			t.Errorf("renewed at %s", at)
		}
		if again := renewAt(certificate, validity); !again.Equal(at) {
			t.Errorf("renewed at %s and at %s", at, again)
		}
		moments[at] = true
	}
	if len(moments) < 2 {
		t.Error("all certificates are renewed at the same time")
	}
	if !renewAt(nil, validity).IsZero() {
		t.Error("a kubeconfig without a certificate has a renewal time")
	}
}

func TestSettings(t *testing.T) {
	base := &rest.Config{Host: "https://garden", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("own")}}
	for name, test := range map[string]struct {
		config v1alpha1.GardenClientConnection
		host   string
		ca     string
		fixed  bool
	}{
		"nothing":         {v1alpha1.GardenClientConnection{}, "https://garden", "own", false},
		"another address": {v1alpha1.GardenClientConnection{GardenClusterAddress: ptr.To("https://other")}, "https://other", "own", false},
		"another CA":      {v1alpha1.GardenClientConnection{GardenClusterCACert: []byte("given")}, "https://garden", "given", true},
		"no CA":           {v1alpha1.GardenClientConnection{GardenClusterCACert: []byte("none")}, "https://garden", "", true},
		"null":            {v1alpha1.GardenClientConnection{GardenClusterCACert: []byte("null\n")}, "https://garden", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := settingsOf(&test.config)
			if got := s.apply(base); got.Host != test.host || string(got.CAData) != test.ca || s.fixedCA() != test.fixed {
				t.Errorf("got %s, %q, %t", got.Host, got.CAData, s.fixedCA())
			}
		})
	}
}

// TestConnection checks that requests use the current credentials, and that credentials for another address are refused.
func TestConnection(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		seen = append(seen, request.Header.Get("Authorization"))
	}))
	defer server.Close()
	connection, err := NewConnection(&rest.Config{Host: server.URL, BearerToken: "first"})
	if err != nil {
		t.Fatal(err)
	}
	garden, err := kubernetes.NewForConfig(connection.Config())
	if err != nil {
		t.Fatal(err)
	}
	send := func() { _, _ = garden.CoreV1().Namespaces().Get(t.Context(), "x", metav1.GetOptions{}) } // the answer is empty
	send()
	if err := connection.Replace(&rest.Config{Host: server.URL, BearerToken: "second"}); err != nil {
		t.Fatal(err)
	}
	send()
	if want := []string{"Bearer first", "Bearer second"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
	if err := connection.Replace(&rest.Config{Host: "https://elsewhere"}); !errors.Is(err, errMoved) {
		t.Errorf("for another address: %v", err)
	}
	if !connection.Expires().IsZero() {
		t.Error("a token has the expiration of a certificate")
	}
}

// TestKubeconfig checks that an encoded kubeconfig is decoded to the same values.
func TestKubeconfig(t *testing.T) {
	certificate := newCertificate(t, time.Now(), time.Now().Add(time.Hour))
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	before := &rest.Config{Host: "https://garden", BearerToken: "of the bootstrap", TLSClientConfig: rest.TLSClientConfig{CAData: encoded, ServerName: "garden"}}
	content, err := encode(withCertificate(before, encoded, []byte("key")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := kubeconfig.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != before.Host || got.ServerName != "garden" || string(got.CAData) != string(encoded) || string(got.CertData) != string(encoded) ||
		string(got.KeyData) != "key" || got.BearerToken != "" {
		t.Errorf("got %+v", got)
	}
}

func TestDeleteUser(t *testing.T) {
	objects := func() kubernetes.Interface {
		return fake.NewClientset(
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-bootstrap-one"}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-one"}},
		)
	}
	for name, test := range map[string]struct {
		user           string
		token, account bool
	}{
		"a bootstrap token":           {"system:bootstrap:abcdef", false, true},
		"another bootstrap token":     {"system:bootstrap:fedcba", true, true},
		"a ServiceAccount":            {"system:serviceaccount:garden:gardenlet-bootstrap-one", true, false},
		"an administrator":            {"admin", true, true},
		"a broken ServiceAccount":     {"system:serviceaccount:garden", true, true},
		"a gardenlet that renewed it": {"gardener.cloud:system:seed:one", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			garden := objects()
			if err := deleteUser(t.Context(), garden, test.user); err != nil {
				t.Fatal(err)
			}
			check := func(what string, err error, want bool) {
				t.Helper()
				if exists := !apierrors.IsNotFound(err); exists != want {
					t.Errorf("%s exists: %t (%v)", what, exists, err)
				}
			}
			_, err := garden.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-abcdef", metav1.GetOptions{})
			check("the token", err, test.token)
			_, err = garden.CoreV1().ServiceAccounts("garden").Get(t.Context(), "gardenlet-bootstrap-one", metav1.GetOptions{})
			check("the ServiceAccount", err, test.account)
			_, err = garden.RbacV1().ClusterRoleBindings().Get(t.Context(), "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-one", metav1.GetOptions{})
			check("the ClusterRoleBinding", err, test.account)
		})
	}
}

// TestAwait checks the result for requests that are signed, denied or failed.
func TestAwait(t *testing.T) {
	condition := func(kind certificatesv1.RequestConditionType) func(*certificatesv1.CertificateSigningRequest) {
		return func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Message: "for a reason"})
		}
	}
	for name, test := range map[string]struct {
		change func(*certificatesv1.CertificateSigningRequest)
		denied bool
		want   string
	}{
		"signed": {change: func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = []byte("certificate") }},
		"denied": {change: condition(certificatesv1.CertificateDenied), denied: true, want: "Denied: : for a reason"},
		"failed": {change: condition(certificatesv1.CertificateFailed), denied: true, want: "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "seed-csr-x"}}
			garden := fake.NewClientset(csr)
			clock := testingclock.NewFakeClock(time.Now())
			requests := garden.CertificatesV1().CertificateSigningRequests()
			done := make(chan struct{})
			go func() { // the change is visible at the second read
				defer close(done)
				for !clock.HasWaiters() {
					runtime.Gosched()
				}
				changed := csr.DeepCopy()
				test.change(changed)
				_, _ = requests.Update(context.Background(), changed, metav1.UpdateOptions{})
				clock.Step(time.Minute)
			}()
			got, err := requester{seed: "one", clock: clock}.await(t.Context(), requests, csr.Name)
			<-done
			if errors.Is(err, errDenied) != test.denied || err == nil && string(got) != "certificate" || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
	garden := fake.NewClientset()
	_, err := requester{clock: testingclock.NewFakeClock(time.Now())}.await(t.Context(), garden.CertificatesV1().CertificateSigningRequests(), "gone")
	if err == nil || !strings.Contains(err.Error(), "deleted before it was signed") {
		t.Errorf("for a deleted request: %v", err)
	}
}

func TestRequestObject(t *testing.T) {
	csr := requester{seed: "one", validity: time.Hour}.object([]byte("content"))
	if csr.GenerateName != "seed-csr-" || *csr.Spec.ExpirationSeconds != 3600 || csr.Spec.SignerName != "kubernetes.io/kube-apiserver-client" || len(csr.Spec.Usages) != 3 {
		t.Errorf("got %+v", csr)
	}
	if csr := (requester{seed: "one"}).object(nil); csr.Spec.ExpirationSeconds != nil {
		t.Errorf("without a validity period: %d", *csr.Spec.ExpirationSeconds)
	}
}

// TestFind checks which credentials are used.
func TestFind(t *testing.T) {
	reference := func(name string) *corev1.SecretReference {
		return &corev1.SecretReference{Namespace: "garden", Name: name}
	}
	content, err := encode(&rest.Config{Host: "https://garden", BearerToken: "x"})
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name string, data []byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Data: map[string][]byte{"kubeconfig": data}}
	}
	for name, test := range map[string]struct {
		config  v1alpha1.GardenClientConnection
		objects []client.Object
		host    string
		err     string
	}{
		"the own Secret":           {v1alpha1.GardenClientConnection{KubeconfigSecret: reference("own")}, []client.Object{secret("own", content)}, "https://garden", ""},
		"nothing":                  {v1alpha1.GardenClientConnection{}, nil, "", "no credentials for the garden"},
		"Secrets that are missing": {v1alpha1.GardenClientConnection{KubeconfigSecret: reference("own"), BootstrapKubeconfig: reference("bootstrap")}, nil, "", "no credentials for the garden"},
		"an empty Secret":          {v1alpha1.GardenClientConnection{KubeconfigSecret: reference("own")}, []client.Object{secret("own", nil)}, "", "no credentials for the garden"},
		"a Secret with nonsense":   {v1alpha1.GardenClientConnection{KubeconfigSecret: reference("own")}, []client.Object{secret("own", []byte("nonsense"))}, "", "Secret garden/own"},
		"a kubeconfig that runs programs": {v1alpha1.GardenClientConnection{KubeconfigSecret: reference("own")}, []client.Object{secret("own", []byte(`
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: "https://garden"}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}}}]
`))}, "", `must not use "exec"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := Garden{SeedName: "one", Config: &test.config, Seed: clientfake.NewClientBuilder().WithObjects(test.objects...).Build()}
			got, err := g.find(t.Context())
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) || err == nil && got.Host != test.host {
				t.Errorf("got %+v and %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "command: rm") {
				t.Error("the error repeats the Secret")
			}
			if present, err := g.Present(t.Context()); (err != nil) != (test.err != "") || err == nil && present.Address().Host != test.host {
				t.Errorf("present: %+v, %v", present, err)
			}
		})
	}
	config := &v1alpha1.GardenClientConnection{KubeconfigSecret: reference("own"), BootstrapKubeconfig: reference("bootstrap")}
	g := Garden{SeedName: "one", Config: config, Seed: clientfake.NewClientBuilder().WithObjects(secret("bootstrap", content)).Build()}
	if present, err := g.Present(t.Context()); present != nil || err != nil {
		t.Errorf("with a bootstrap kubeconfig: %+v, %v", present, err)
	}
}
