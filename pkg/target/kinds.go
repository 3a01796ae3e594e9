package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// ErrKindNotServed is returned if the API server does not serve the kind, or its group and version. It does not mean
// that objects of the kind no longer exist.
var ErrKindNotServed = errors.New("the target cluster does not serve this kind")

const (
	// discoveryTimeout limits the duration of one discovery request.
	discoveryTimeout = 30 * time.Second
	// absenceHolds is how long the result that a kind is not served is valid for callers of Mapping. During this time, a
	// thousand objects of the kind cost no more requests than one object. It is longer than most reconciles take.
	absenceHolds = 5 * time.Second
)

// kinds discovers the kinds that a cluster serves. All identities share it, because the result does not depend on the
// client. It is safe for concurrent use.
type kinds struct {
	config    *rest.Config
	http      *http.Client
	discovery discovery.DiscoveryInterface
	clock     clock.PassiveClock
	// asking deduplicates concurrent requests for the same kind.
	asking singleflight.Group

	mu     sync.RWMutex
	mapper *loadingMapper
	// mappings caches the results of the mapper, whose lookups are slow.
	mappings map[schema.GroupVersionKind]*meta.RESTMapping
	// absent are the kinds that were not served at the time of the last request for them.
	absent map[schema.GroupVersionKind]*absence
}

// loadingMapper is a REST mapper that requests unknown kinds from the API server.
type loadingMapper struct {
	meta.RESTMapper
	// loaded is set once the mapper has read the served kinds. From then on, it requests unknown versions of a group.
	// Before, it treats kinds that are not in the list of all kinds as absent, even if an aggregated API is down.
	loaded bool
}

// absence is the result that a kind is not served in a version.
type absence struct {
	asked time.Time

	mu sync.Mutex
	// searched is set once other is known. other is the mapping of the kind in another version, or nil if there is none.
	searched bool
	other    *meta.RESTMapping
}

func newKinds(config *rest.Config, httpClient *http.Client) (*kinds, error) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a discovery client for the target cluster: %w", err)
	}
	k := &kinds{config: config, http: httpClient, discovery: discoveryClient, clock: clock.RealClock{}}
	if err := k.Rediscover(); err != nil {
		return nil, err
	}
	return k, nil
}

// Rediscover clears the cached kinds of the cluster. They are read again when they are next requested.
func (k *kinds) Rediscover() error {
	mapper, err := apiutil.NewDynamicRESTMapper(k.config, k.http)
	if err != nil {
		return fmt.Errorf("create a REST mapper for the target cluster: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mapper, k.mappings = &loadingMapper{RESTMapper: mapper}, map[schema.GroupVersionKind]*meta.RESTMapping{}
	k.absent = map[schema.GroupVersionKind]*absence{}
	return nil
}

// Mapping returns the resource and scope of a kind. The error wraps ErrKindNotServed if the kind is not served, or was
// not served a few seconds ago. With any other error, this is unknown.
func (k *kinds) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if k.absence(gvk) != nil {
		return nil, notServed(gvk)
	}
	return k.Discover(gvk)
}

// Discover is Mapping for callers that have to detect a new kind immediately: it ignores the cached result that a kind
// was not served.
func (k *kinds) Discover(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	k.mu.RLock()
	found := k.mappings[gvk]
	k.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	answer, err, _ := k.asking.Do(gvk.String(), func() (any, error) { return k.ask(gvk) })
	mapping, _ := answer.(*meta.RESTMapping)
	return mapping, err
}

// ask requests a kind from the API server, and caches the result.
func (k *kinds) ask(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	k.mu.RLock()
	mapper := k.mapper
	loaded := mapper.loaded
	k.mu.RUnlock()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("discover %s: %w", gvk, err)
	}
	if err != nil && !loaded {
		served, err := k.Serves(gvk)
		if err != nil {
			return nil, err
		}
		if served {
			return nil, fmt.Errorf("discover %s: the kind was just added, try again", gvk)
		}
	}
	k.remember(gvk, mapper, mapping)
	if err != nil {
		return nil, notServed(gvk)
	}
	return mapping, nil
}

// remember caches the result of a mapper, unless the mapper was replaced in the meantime.
func (k *kinds) remember(gvk schema.GroupVersionKind, finder *loadingMapper, mapping *meta.RESTMapping) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mapper != finder {
		return
	}
	finder.loaded = true
	now := k.clock.Now()
	for other, absence := range k.absent { // limits them to recently requested kinds
		if now.Sub(absence.asked) >= absenceHolds {
			delete(k.absent, other)
		}
	}
	if mapping == nil {
		k.absent[gvk] = &absence{asked: now}
		return
	}
	delete(k.absent, gvk)
	k.mappings[gvk] = mapping
}

// absence returns the result that a kind is not served, if there is one that is still valid.
func (k *kinds) absence(gvk schema.GroupVersionKind) *absence {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if absence := k.absent[gvk]; absence != nil && k.clock.Since(absence.asked) < absenceHolds {
		return absence
	}
	return nil
}

func notServed(gvk schema.GroupVersionKind) error { return fmt.Errorf("%s: %w", gvk, ErrKindNotServed) }

// mappingInAnyVersion returns the mapping of a kind. If its version is not served, this is the mapping of another
// version. Errors are those of Mapping.
func (k *kinds) mappingInAnyVersion(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := k.Mapping(gvk)
	if !errors.Is(err, ErrKindNotServed) {
		return mapping, err
	}
	absence := k.absence(gvk)
	if absence == nil { // it has just expired
		return nil, err
	}
	absence.mu.Lock()
	defer absence.mu.Unlock()
	if !absence.searched {
		other, searchErr := k.search(gvk.GroupKind())
		if searchErr != nil {
			return nil, searchErr
		}
		absence.other, absence.searched = other, true
	}
	if absence.other == nil {
		return nil, err
	}
	return absence.other, nil
}

// search returns the mapping of a kind in the preferred version of the API server. It is nil if the kind is not served
// in any version. As in all of discovery, the timeout of the client applies, because callers with different contexts
// share the result.
func (k *kinds) search(gk schema.GroupKind) (*meta.RESTMapping, error) {
	// For an unknown group, the mapper would read the list of all groups.
	if gk.Group != "" {
		err := k.discovery.RESTClient().Get().AbsPath("/apis", gk.Group).Do(context.Background()).Error()
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("discover the versions of %s: %w", gk, err)
		}
	}
	mapping, err := k.currentMapper().RESTMapping(gk)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discover the versions of %s: %w", gk, err)
	}
	return mapping, nil
}

func (k *kinds) currentMapper() *loadingMapper {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.mapper
}

// Serves requests from the API server, without a cache, whether it serves the kind in its version. If it returns an
// error, this is unknown, such as for an aggregated API that is down.
func (k *kinds) Serves(gvk schema.GroupVersionKind) (bool, error) {
	list, err := k.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discover %s: %w", gvk.GroupVersion(), err)
	}
	for _, resource := range list.APIResources {
		if resource.Kind == gvk.Kind {
			return true, nil
		}
	}
	return false, nil
}

// Abolished requests from the API server whether no version of the kind is served any longer, so that no object of it
// can be read, changed or deleted. If it returns an error, this is unknown: an API server that is not ready or an
// aggregated API that is down proves nothing.
func (k *kinds) Abolished(ctx context.Context, gk schema.GroupKind) (bool, error) {
	if err := k.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return false, fmt.Errorf("target cluster is not ready to report whether it serves %s: %w", gk, err)
	}
	groups, err := k.discovery.ServerGroups()
	if err != nil {
		return false, fmt.Errorf("discover the API groups of the target cluster: %w", err)
	}
	for _, group := range groups.Groups {
		if group.Name != gk.Group {
			continue
		}
		for _, version := range group.Versions {
			served, err := k.Serves(gk.WithVersion(version.Version))
			if served || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// Explain converts the error of a request to ErrKindNotServed if the "not found" of the API server refers to the
// resource and not to the object, and clears the outdated mapping. It returns other errors unchanged.
func (k *kinds) Explain(ref object.Ref, err error) error {
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	// Many requests may fail at the same time because of one mapping. The first of them clears it.
	if k.remembers(ref.GroupVersionKind) {
		if rediscoverErr := k.Rediscover(); rediscoverErr != nil {
			return errors.Join(err, rediscoverErr)
		}
	}
	return notServed(ref.GroupVersionKind)
}

// remembers reports whether requests for a kind use a cached mapping.
func (k *kinds) remembers(gvk schema.GroupVersionKind) bool {
	k.mu.RLock()
	found, absence := k.mappings[gvk], k.absent[gvk]
	k.mu.RUnlock()
	if found != nil || absence == nil {
		return found != nil
	}
	absence.mu.Lock()
	defer absence.mu.Unlock()
	return absence.other != nil
}
