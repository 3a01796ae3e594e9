// Package seedfacts reads facts about the seed cluster: the version of its API server, and whether the seed is also the runtime cluster of a
// garden, and what the operator owns there. All controllers share one [Reader], so that they do not disagree.
package seedfacts

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

// readEvery is how long facts are used before they are read again. A version changes only when someone upgrades the seed. [Reader.Watch] reports
// changes of Gardens at once.
const readEvery = 5 * time.Minute

// Facts are facts about a seed.
type Facts struct {
	// Version of Kubernetes, such as 1.37.1.
	Version string
	// IsGarden is set if the seed is also the garden.
	IsGarden bool
	// HasIstio is set if the operator deploys the control plane of Istio there.
	HasIstio bool
	// OperatorVersion is the version of the operator that has reconciled the Garden last; empty if there is none.
	OperatorVersion string
}

// Cluster returns who owns the parts of the cluster.
func (f Facts) Cluster() inventory.Cluster {
	return inventory.Cluster{Garden: f.IsGarden, Istio: f.HasIstio}
}

// Reader reads facts.
type Reader struct {
	// Server reads the version of the API server, without the leading v.
	Server func(context.Context) (string, error)
	// Uncached reads from the API server.
	Uncached client.Reader
	Clock    clock.PassiveClock

	mu       sync.Mutex
	known    *Facts
	readAt   time.Time
	onChange []func()
}

// New returns a reader for the cluster of a client configuration.
func New(config *rest.Config, http *http.Client, uncached client.Reader, clock clock.PassiveClock) *Reader {
	return &Reader{Uncached: uncached, Clock: clock, Server: func(context.Context) (string, error) {
		asked, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
		if err != nil {
			return "", fmt.Errorf("connect to the seed: %w", err)
		}
		version, err := asked.ServerVersion()
		if err != nil {
			return "", fmt.Errorf("read the version of the seed: %w", err)
		}
		return strings.TrimPrefix(version.GitVersion, "v"), nil
	}}
}

// OnChange adds a function that is called when facts have changed. It must return immediately.
func (r *Reader) OnChange(changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onChange = append(r.onChange, changed)
}

// Get returns the facts. It reads them again if they are older than five minutes. If that fails, those that are known
// remain valid until the next call. It returns an error only if none are known.
func (r *Reader) Get(ctx context.Context) (Facts, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known != nil && r.Clock.Since(r.readAt) < readEvery {
		return *r.known, nil
	}
	read, err := r.read(ctx)
	if err != nil && r.known != nil {
		return *r.known, nil
	}
	if err != nil {
		return Facts{}, err
	}
	before := r.known
	r.known, r.readAt = &read, r.Clock.Now()
	if before != nil && *before != read {
		for _, changed := range r.onChange {
			changed()
		}
	}
	return read, nil
}

func (r *Reader) read(ctx context.Context) (Facts, error) {
	version, err := r.Server(ctx)
	if err != nil {
		return Facts{}, err
	}
	gardens := &unstructured.UnstructuredList{}
	gardens.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("GardenList"))
	err = r.Uncached.List(ctx, gardens)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return Facts{}, fmt.Errorf("check whether the seed is the garden: %w", err)
	}
	facts := Facts{Version: version}
	for i := range gardens.Items {
		facts.add(&gardens.Items[i])
	}
	return facts, nil
}

// add adds what a Garden says. The operator reconciles only one.
func (f *Facts) add(garden *unstructured.Unstructured) {
	f.IsGarden = true
	if garden.GetAnnotations()[constants.AnnotationGardenExposure] == string(exposure.Istio) {
		f.HasIstio = true
	}
	if version, _, err := unstructured.NestedString(garden.Object, "status", "gardener", "version"); err == nil && version != "" {
		f.OperatorVersion = version
	}
}

// expire makes the next Get read the facts again, and notifies all that depend on them.
func (r *Reader) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readAt = time.Time{}
	for _, changed := range r.onChange {
		changed()
	}
}
