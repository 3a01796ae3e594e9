package installation

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// ociRegistry is a registry that can be stopped and restarted with its contents.
type ociRegistry struct {
	*httptest.Server
	handler http.Handler
	// host is the address of the registry.
	host string
}

// start starts the registry. A restarted registry listens at its previous address.
func (r *ociRegistry) start(w *world) {
	w.Helper()
	r.Server = httptest.NewUnstartedServer(r.handler)
	if r.host != "" {
		kit.Must(w, r.Listener.Close())
		var err error
		r.Listener, err = (&net.ListenConfig{}).Listen(w.Context(), "tcp", r.host)
		kit.Must(w, err)
	}
	r.StartTLS()
	w.Cleanup(r.Close)
	r.host = strings.TrimPrefix(r.URL, "https://")
}

// newRegistry starts a registry with a chart, and returns it and the reference of the chart. The garden has two Secrets for
// it: authority, and pull, which lacks the label that deployments require.
func (w *world) newRegistry(chart []byte) (*ociRegistry, string) {
	w.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &ociRegistry{handler: http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if user, password, _ := request.BasicAuth(); user != "user" || password != "password" {
			response.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(response, request)
	})}
	server.start(w)
	host := server.host
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(chart, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"))
	kit.Must(w, err)
	reference, err := name.ParseReference(host + "/charts/example:1.0.0")
	kit.Must(w, err)
	kit.Must(w, remote.Write(reference, image, remote.WithAuth(&authn.Basic{Username: "user", Password: "password"}), remote.WithTransport(server.Client().Transport)))
	w.create(w.garden, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths": {%q: {"username": "user", "password": "password"}}}`, host)},
	})
	w.create(w.garden, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "authority", Labels: map[string]string{"gardener.cloud/role": "oci-ca-bundle"}},
		Data:       map[string][]byte{"bundle.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	})
	return server, reference.String()
}
