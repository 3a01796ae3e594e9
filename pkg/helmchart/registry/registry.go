// Package registry pulls Helm charts from OCI registries. It is shared by all programs that install extensions.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
)

const (
	// chartMediaType is the media type of the layer with a chart.
	chartMediaType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// KeyBundle is the key of the certificates in a Secret with the CA of a registry.
	KeyBundle = "bundle.crt"
	// keptCharts is the number of charts that are cached in memory.
	keptCharts = 32
	// pullTimeout limits a pull from a registry.
	pullTimeout = time.Minute
)

// Registries pulls charts and caches them by digest, and the last known digests of tags. It is safe for concurrent use.
type Registries struct {
	charts, digests *lru.Cache
}

// New returns an empty cache of charts.
func New() *Registries {
	return &Registries{charts: lru.New(keptCharts), digests: lru.New(keptCharts)}
}

// Pull returns the archive of a chart. credentials is the Secret with the password of the registry, of type dockerconfigjson, and authority
// that with the CA of its certificate; each may be nil. Errors contain no data of them. A chart with a digest is pulled once. A tag is resolved to its current digest each time.
// While the registry is not available, its last known digest is used, because an outage of a registry must not affect
// extensions that are installed.
func (r *Registries) Pull(ctx context.Context, from *gardencorev1.OCIRepository, credentials, authority *corev1.Secret) ([]byte, error) {
	reference, err := name.ParseReference(referenceOf(from))
	if err != nil {
		return nil, fmt.Errorf("the reference of the chart: %w", err)
	}
	if digest, ok := reference.(name.Digest); ok {
		if chart, found := r.kept(digest.DigestStr()); found {
			return chart, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	options, closeIdle, err := optionsFor(ctx, reference, credentials, authority)
	if err != nil {
		return nil, err
	}
	defer closeIdle()
	found, err := remote.Get(reference, options...)
	if err != nil {
		if chart, found := r.lastKnown(reference.String()); found && unavailable(err) {
			return chart, nil
		}
		return nil, fmt.Errorf("request %s from the registry %s: %w", reference, reference.Context().RegistryStr(), err)
	}
	chart, cached := r.kept(found.Digest.String())
	if !cached {
		if chart, err = chartIn(found); err != nil {
			return nil, fmt.Errorf("pull %s from the registry %s: %w", reference, reference.Context().RegistryStr(), err)
		}
		r.charts.Add(found.Digest.String(), chart)
	}
	r.digests.Add(reference.String(), found.Digest.String())
	return chart, nil
}

// lastKnown returns the cached chart with the digest that a reference had last.
func (r *Registries) lastKnown(reference string) ([]byte, bool) {
	value, found := r.digests.Get(reference)
	digest, ok := value.(string)
	if !found || !ok {
		return nil, false
	}
	return r.kept(digest)
}

// unavailable reports whether a request failed because the registry cannot answer it now. Other errors, such as a refused
// password, an untrusted certificate or a tag that does not exist, need a correction.
func unavailable(err error) bool {
	if answered := (*transport.Error)(nil); errors.As(err, &answered) {
		return answered.StatusCode >= http.StatusInternalServerError || answered.StatusCode == http.StatusTooManyRequests
	}
	if failed := net.Error(nil); errors.As(err, &failed) && failed.Timeout() {
		return true
	}
	connection := (*net.OpError)(nil)
	return errors.As(err, &connection) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// kept returns the cached chart with a digest.
func (r *Registries) kept(digest string) ([]byte, bool) {
	value, found := r.charts.Get(digest)
	if !found {
		return nil, false
	}
	chart, ok := value.([]byte)
	return chart, ok
}

// referenceOf returns the reference of a chart. A digest takes precedence over a tag.
func referenceOf(from *gardencorev1.OCIRepository) string {
	trim := func(text *string) string { return strings.TrimPrefix(ptr.Deref(text, ""), "oci://") }
	if reference := trim(from.Ref); reference != "" {
		return reference
	}
	if digest := ptr.Deref(from.Digest, ""); digest != "" {
		return trim(from.Repository) + "@" + digest
	}
	return trim(from.Repository) + ":" + ptr.Deref(from.Tag, "")
}

// chartIn returns the chart in an artifact. The library verifies its digest.
func chartIn(found *remote.Descriptor) ([]byte, error) {
	image, err := found.Image()
	if err != nil {
		return nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType != chartMediaType {
			continue
		}
		if layer.Size > helmchart.MaxArchiveBytes {
			return nil, fmt.Errorf("the chart has %d bytes, more than the %d allowed", layer.Size, helmchart.MaxArchiveBytes)
		}
		content, err := image.LayerByDigest(layer.Digest)
		if err != nil {
			return nil, err
		}
		reader, err := content.Compressed()
		if err != nil {
			return nil, err
		}
		chart, err := io.ReadAll(io.LimitReader(reader, helmchart.MaxArchiveBytes+1))
		return chart, errors.Join(err, reader.Close())
	}
	return nil, fmt.Errorf("the artifact has no layer of the type %s: it is not a Helm chart", chartMediaType)
}

// optionsFor returns options for requests to a registry, and a function that closes idle connections.
func optionsFor(ctx context.Context, reference name.Reference, credentials, authority *corev1.Secret) ([]remote.Option, func(), error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, nil, errors.New("the default HTTP transport was replaced by one that cannot be cloned")
	}
	connections := base.Clone()
	connections.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority.Data[KeyBundle]) {
			return nil, nil, fmt.Errorf("the Secret %s has no certificates in the key %s", authority.Name, KeyBundle)
		}
		connections.TLSClientConfig.RootCAs = pool
	}
	authenticator := authn.Anonymous
	if credentials != nil {
		found, err := authenticatorOf(credentials, reference.Context().RegistryStr())
		if err != nil {
			return nil, nil, err
		}
		authenticator = found
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(onlyTLS{connections}), remote.WithAuth(authenticator),
	}, connections.CloseIdleConnections, nil
}

// onlyTLS refuses requests without TLS. The library sends them to registries at private and local addresses if TLS fails, and
// to servers of tokens that a registry names.
type onlyTLS struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (o onlyTLS) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("charts are pulled only with TLS: %s does not offer it", request.URL.Host)
	}
	return o.next.RoundTrip(request)
}

// authenticatorOf returns the credentials for a registry from a Secret of type dockerconfigjson. Errors do not contain its data.
func authenticatorOf(secret *corev1.Secret, registry string) (authn.Authenticator, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
		return nil, fmt.Errorf("the key %s of Secret %s is not a Docker configuration", corev1.DockerConfigJsonKey, secret.Name)
	}
	for host, auth := range config.Auths {
		host = strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		if host == registry {
			return authn.FromConfig(auth), nil
		}
	}
	return nil, fmt.Errorf("the Secret %s has no credentials for the registry %s", secret.Name, registry)
}
