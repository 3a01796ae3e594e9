package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
)

// host is a registry with TLS that requires a password.
type host struct {
	*httptest.Server
	name     string
	requests atomic.Int32
	// credentials and authority are Secrets with the password and the certificate authority of the registry.
	credentials, authority *corev1.Secret
}

const password = "top-secret"

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{}
	inner := ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		h.requests.Add(1)
		if user, given, _ := request.BasicAuth(); user != "user" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, request)
	}))
	t.Cleanup(h.Close)
	h.name = strings.TrimPrefix(h.URL, "https://")
	auth := base64.StdEncoding.EncodeToString([]byte("user:" + password))
	h.credentials = secretOf("pull", corev1.DockerConfigJsonKey, fmt.Sprintf(`{"auths": {"https://%s/v1/": {"auth": %q}}}`, h.name, auth))
	h.authority = secretOf("authority", KeyBundle, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})))
	return h
}

func secretOf(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

// push stores an artifact and returns its digest.
func (h *host) push(t *testing.T, content []byte, mediaType types.MediaType) string {
	t.Helper()
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(content, mediaType))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(h.name + "/charts/example:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	options, end, err := optionsFor(t.Context(), reference, h.credentials, h.authority)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := remote.Write(reference, image, options...); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// TestPull checks that a chart is pulled once for a digest, and again when its tag moves to another digest.
func TestPull(t *testing.T) {
	h, r := newHost(t), New()
	first := h.push(t, []byte("first"), chartMediaType)
	repository := ptr.To("oci://" + h.name + "/charts/example")
	pull := func(from gardencorev1.OCIRepository, want string) (requests int32) {
		t.Helper()
		before := h.requests.Load()
		chart, err := r.Pull(t.Context(), &from, h.credentials, h.authority)
		if err != nil || !bytes.Equal(chart, []byte(want)) {
			t.Fatalf("got %q, %v, want %q", chart, err, want)
		}
		return h.requests.Load() - before
	}
	if sent := pull(gardencorev1.OCIRepository{Repository: repository, Tag: ptr.To("1.0.0"), Digest: &first}, "first"); sent == 0 {
		t.Error("the chart was not pulled")
	}
	if sent := pull(gardencorev1.OCIRepository{Repository: repository, Tag: ptr.To("2.0.0"), Digest: &first}, "first"); sent != 0 {
		t.Errorf("a known digest was requested again: %d requests", sent)
	}
	tag := gardencorev1.OCIRepository{Ref: ptr.To(h.name + "/charts/example:1.0.0")}
	pull(tag, "first")
	h.push(t, []byte("second"), chartMediaType)
	pull(tag, "second")
}

// TestPullFails checks that errors name what to correct, and contain no credentials.
func TestPullFails(t *testing.T) {
	h := newHost(t)
	h.push(t, []byte("first"), chartMediaType)
	tag := &gardencorev1.OCIRepository{Ref: ptr.To(h.name + "/charts/example:1.0.0")}
	wrong := secretOf("pull", corev1.DockerConfigJsonKey, fmt.Sprintf(`{"auths": {%q: {"username": "user", "password": "other-secret"}}}`, h.name))
	for test, fails := range map[string]struct {
		from                   *gardencorev1.OCIRepository
		credentials, authority *corev1.Secret
		want                   string
	}{
		"no credentials":       {tag, nil, h.authority, "UNAUTHORIZED"},
		"wrong credentials":    {tag, wrong, h.authority, "401"},
		"no authority":         {tag, h.credentials, nil, "certificate"},
		"another registry":     {tag, secretOf("pull", corev1.DockerConfigJsonKey, `{"auths": {"example.org": {}}}`), h.authority, "Secret pull has no credentials"},
		"no configuration":     {tag, secretOf("pull", corev1.DockerConfigJsonKey, "top-secret"), h.authority, "is not a Docker configuration"},
		"no certificates":      {tag, h.credentials, secretOf("authority", KeyBundle, "none"), "Secret authority has no certificates"},
		"the registry's name":  {tag, nil, h.authority, " from the registry " + h.name},
		"another tag":          {&gardencorev1.OCIRepository{Ref: ptr.To(h.name + "/charts/example:3.0.0")}, h.credentials, h.authority, "3.0.0"},
		"an invalid reference": {&gardencorev1.OCIRepository{Ref: ptr.To("a b")}, nil, nil, "the reference of the chart"},
	} {
		t.Run(test, func(t *testing.T) {
			_, err := New().Pull(t.Context(), fails.from, fails.credentials, fails.authority)
			if err == nil || !strings.Contains(strings.ToUpper(err.Error()), strings.ToUpper(fails.want)) || strings.Contains(err.Error(), "secret\"") ||
				strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "other-secret") {
				t.Errorf("got %v, want an error with %q", err, fails.want)
			}
		})
	}
	h.push(t, []byte("first"), types.OCILayer)
	if _, err := New().Pull(t.Context(), tag, h.credentials, h.authority); err == nil || !strings.Contains(err.Error(), "not a Helm chart") {
		t.Errorf("for an image: %v", err)
	}
}

// TestPullWhileTheRegistryIsDown checks that the error names the registry and the cause.
func TestPullWhileTheRegistryIsDown(t *testing.T) {
	h := newHost(t)
	h.Close()
	_, err := New().Pull(t.Context(), &gardencorev1.OCIRepository{Ref: ptr.To(h.name + "/charts/example:1.0.0")}, h.credentials, h.authority)
	if err == nil || !strings.Contains(err.Error(), " from the registry "+h.name) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

// TestPullNeedsTLS checks that a chart is not pulled from a registry without TLS, and that the password is not sent to it. At
// such an address, the library would try HTTP after HTTPS. The same holds for the server of tokens that a registry names.
func TestPullNeedsTLS(t *testing.T) {
	inner := ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0)))
	var asks, sent atomic.Bool
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, given, has := request.BasicAuth()
		sent.Store(sent.Load() || given == password)
		if asks.Load() && !has {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, request)
	}))
	t.Cleanup(plain.Close)
	address := strings.TrimPrefix(plain.URL, "http://")
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer([]byte("chart"), chartMediaType))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(address + "/charts/example:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
	redirecting := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+plain.URL+`/token",service="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(redirecting.Close)
	asks.Store(true)
	for _, host := range []string{address, strings.TrimPrefix(redirecting.URL, "https://")} {
		authority := secretOf("authority", KeyBundle, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: redirecting.Certificate().Raw})))
		auth := base64.StdEncoding.EncodeToString([]byte("user:" + password))
		credentials := secretOf("pull", corev1.DockerConfigJsonKey, fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, auth))
		from := &gardencorev1.OCIRepository{Ref: ptr.To(host + "/charts/example:1.0.0")}
		chart, err := New().Pull(t.Context(), from, credentials, authority)
		if err == nil || host == address && !strings.Contains(err.Error(), "only with TLS") || sent.Load() {
			t.Errorf("from %s: chart %q, error %v, password sent: %t", host, chart, err, sent.Load())
		}
	}
}

// TestPullOfATagDuringAnOutage checks that the last known chart of a tag is used while the registry cannot answer, but not if it
// refuses the request, and not for another tag.
func TestPullOfATagDuringAnOutage(t *testing.T) {
	h, r := newHost(t), New()
	h.push(t, []byte("first"), chartMediaType)
	working, answer := h.Config.Handler, 0
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if answer != 0 {
			w.WriteHeader(answer)
			return
		}
		working.ServeHTTP(w, request)
	})
	pull := func(tag string) (string, error) {
		chart, err := r.Pull(t.Context(), &gardencorev1.OCIRepository{Ref: ptr.To(h.name + "/charts/example:" + tag)}, h.credentials, h.authority)
		return string(chart), err
	}
	check := func(when string, known bool) {
		t.Helper()
		if chart, err := pull("1.0.0"); (chart == "first") != known || (err == nil) != known {
			t.Errorf("%s: chart %q, error %v", when, chart, err)
		}
		if chart, err := pull("2.0.0"); err == nil {
			t.Errorf("%s: the chart of another tag is %q", when, chart)
		}
	}
	check("while it works", true)
	answer = http.StatusInternalServerError
	check("internal error", true)
	answer = http.StatusForbidden
	check("refusal", false)
	answer = http.StatusNotFound
	check("the tag is gone", false)
	h.Close()
	check("registry down", true)
}
