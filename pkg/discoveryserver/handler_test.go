package discoveryserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/keyutil"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/trellis-k8s/trellis/pkg/issuer"
)

const host = "discovery.example.org"

// published returns documents of an issuer with a new key.
func published(t *testing.T, url string) issuer.Documents {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := issuer.NewDocuments(url, text)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// secretOf returns a Secret with the documents of a Shoot.
func secretOf(documents issuer.Documents, project, uid string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: project + "--" + uid, Labels: issuer.Labels(project, "garden-"+project, "one")},
		Data:       map[string][]byte{issuer.KeyConfiguration: []byte(documents.Configuration), issuer.KeyKeys: []byte(documents.Keys)},
	}
}

// served is a server with a store of documents.
type served struct {
	*testing.T
	store    *store
	handler  http.Handler
	synced   bool
	recorded *serverMetrics
}

func serve(t *testing.T, identities *files) *served {
	t.Helper()
	s := &served{T: t, synced: true, recorded: newMetrics(prometheus.NewRegistry())}
	s.store = newStore(logr.Discard(), s.recorded.count)
	s.handler = newHandler(handler{shoots: s.store, identities: identities, synced: func() bool { return s.synced }, metrics: s.recorded})
	return s
}

// ask sends a request, and compares the status and the body, if a body is wanted.
func (s *served) ask(what, method, path string, status int, body string) http.Header {
	s.Helper()
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, httptest.NewRequestWithContext(s.Context(), method, path, nil))
	if answer.Code != status || body != "" && answer.Body.String() != body {
		s.Errorf("%s: %d %s, want %d", what, answer.Code, answer.Body, status)
	}
	return answer.Header()
}

const (
	configuration = "/.well-known/openid-configuration"
	ofShoot       = "/projects/dev/shoots/1/issuer"
)

// TestDocuments checks which requests are answered with documents, and how clients may keep the answers.
func TestDocuments(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	documents := published(t, issuer.URL(host, "dev", "1"))
	s.synced = false
	s.store.set(secretOf(documents, "dev", "1"))
	if header := s.ask("before the cache has synced", "GET", ofShoot+"/jwks", 503, ""); header.Get("Cache-Control") != "no-store" || header.Get("Retry-After") == "" {
		t.Errorf("an answer without documents has the header %v", header)
	}
	s.synced = true
	header := s.ask("the configuration", "GET", ofShoot+configuration, 200, documents.Configuration)
	if header.Get("Cache-Control") != "public, max-age=300" || header.Get("Content-Type") != "application/json" {
		t.Errorf("the header is %v", header)
	}
	if header := s.ask("the keys", "GET", ofShoot+"/jwks", 200, documents.Keys); header.Get("Content-Type") != "application/jwk-set+json" {
		t.Errorf("the header is %v", header)
	}
	s.ask("HEAD", "HEAD", ofShoot+"/jwks", 200, "")
	s.ask("another UID", "GET", "/projects/dev/shoots/2/issuer/jwks", 404, "")
	s.ask("another Project", "GET", "/projects/prod/shoots/1/issuer/jwks", 404, "")
	s.ask("another path", "GET", ofShoot+"/keys", 404, "")
	s.ask("no path", "GET", "/", 404, "")
	s.ask("no workload identities", "GET", "/garden/workload-identity/issuer/jwks", 404, "")
	s.ask("a slash in a name", "GET", "/projects/dev%2Fshoots%2F1%2Fissuer%2Fjwks/shoots/1/issuer/jwks", 404, "")
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
		s.ask(method, method, ofShoot+"/jwks", 405, "")
	}
	if found := testutil.ToFloat64(s.recorded.requests.WithLabelValues("shoot", "200")); found != 3 {
		t.Errorf("%v answers with documents of Shoots are counted, want 3", found)
	}
}

// TestStore checks that only documents that belong to their Secret are served, and none that were replaced or deleted.
func TestStore(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	events, url := s.store.handler(), issuer.URL(host, "dev", "1")
	first, second := published(t, url), published(t, url)
	count := func(what string, served, invalid float64) {
		t.Helper()
		if a, b := testutil.ToFloat64(s.recorded.issuers.WithLabelValues("served")), testutil.ToFloat64(s.recorded.issuers.WithLabelValues("invalid")); a != served || b != invalid {
			t.Errorf("%s: %v served and %v invalid, want %v and %v", what, a, b, served, invalid)
		}
	}
	secret := secretOf(first, "dev", "1")
	events.OnAdd(secret, true)
	s.ask("added", "GET", ofShoot+"/jwks", 200, first.Keys)
	events.OnUpdate(secret, secretOf(second, "dev", "1"))
	s.ask("rotated", "GET", ofShoot+"/jwks", 200, second.Keys)
	count("rotated", 1, 0)

	events.OnAdd(secretOf(first, "prod", "1"), false) // its issuer is that of dev
	s.ask("of another Project", "GET", "/projects/prod/shoots/1/issuer/jwks", 404, "")
	foreign := secretOf(published(t, url), "dev", "1")
	foreign.Name = "dev--1-copy"
	events.OnAdd(foreign, false)
	s.ask("not replaced by another Secret", "GET", ofShoot+"/jwks", 200, second.Keys)
	count("invalid Secrets", 1, 2)

	broken := secretOf(second, "dev", "1")
	broken.Data = maps.Clone(broken.Data)
	broken.Data[issuer.KeyKeys] = []byte("{}")
	events.OnUpdate(secret, broken)
	s.ask("broken", "GET", ofShoot+"/jwks", 404, "")
	events.OnUpdate(broken, secret)
	s.ask("mended", "GET", ofShoot+"/jwks", 200, first.Keys)
	events.OnDelete(foreign)
	events.OnDelete(secretOf(first, "prod", "1"))
	count("invalid ones deleted", 1, 0)
	events.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a/dev--1", Obj: secret})
	s.ask("deleted", "GET", ofShoot+"/jwks", 404, "")
	count("deleted", 0, 0)
}

// TestFiles checks that the documents of workload identities are checked, and reloaded when they change.
func TestFiles(t *testing.T) {
	t.Parallel()
	directory, clock := t.TempDir(), testingclock.NewFakeClock(time.Now())
	paths := []string{filepath.Join(directory, "openid-configuration.json"), filepath.Join(directory, "jwks.json")}
	write := func(documents issuer.Documents) {
		t.Helper()
		for i, text := range []string{documents.Configuration, documents.Keys} {
			if err := os.WriteFile(paths[i], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found, err := newFiles("", "", logr.Discard(), clock); found != nil || err != nil {
		t.Errorf("without files: %v, %v", found, err)
	}
	for want, args := range map[string][]string{"must be set together": {paths[0], ""}, "no such file": paths} {
		if _, err := newFiles(args[0], args[1], logr.Discard(), clock); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	url := "https://" + host + pathWorkloadIdentity
	first, second := published(t, url), published(t, url)
	write(issuer.Documents{Configuration: first.Configuration, Keys: `{"keys":[]}`})
	if _, err := newFiles(paths[0], paths[1], logr.Discard(), clock); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("without keys: %v", err)
	}
	write(first)
	found, err := newFiles(paths[0], paths[1], logr.Discard(), clock)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, found)
	s.ask("the first keys", "GET", pathWorkloadIdentity+"/jwks", 200, first.Keys)
	write(second)
	if err := found.read(); err != nil {
		t.Fatal(err)
	}
	s.ask("the second keys", "GET", pathWorkloadIdentity+"/jwks", 200, second.Keys)
	s.ask("the configuration", "GET", pathWorkloadIdentity+configuration, 200, second.Configuration)
	write(issuer.Documents{Configuration: "{"})
	if err := found.read(); err == nil {
		t.Error("documents that are not valid are loaded")
	}
	s.ask("the last valid keys", "GET", pathWorkloadIdentity+"/jwks", 200, second.Keys)
}
