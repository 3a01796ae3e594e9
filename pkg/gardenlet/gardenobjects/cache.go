// Package gardenobjects reads single objects of the garden, such as credentials of a Seed, through individual watches.
// gardenlet has no permission to list all of them, and sends no requests while they do not change.
package gardenobjects

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// syncTimeout limits the first read of an object.
const syncTimeout = 10 * time.Second

// Cache contains the objects that were read before. It is a runnable of a manager. Watches run until the process ends,
// which is acceptable because there are few of them.
type Cache struct {
	garden cluster.Cluster

	// started is closed once running, the context of the watches, is set.
	started chan struct{}
	running context.Context //nolint:containedctx // the watches run longer than the calls that start them

	mu       sync.Mutex
	watches  map[key]cache.Cache
	onChange []func(client.Object)
}

type key struct {
	kind schema.GroupKind
	name client.ObjectKey
}

// New returns a cache of a garden.
func New(garden cluster.Cluster) *Cache {
	return &Cache{garden: garden, started: make(chan struct{}), watches: map[key]cache.Cache{}}
}

// OnChange registers a function that is called with each created, changed or deleted object. It must not block.
func (c *Cache) OnChange(call func(client.Object)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onChange = append(c.onChange, call)
}

// Start runs the watches until the context ends.
func (c *Cache) Start(ctx context.Context) error {
	c.running = ctx
	close(c.started)
	<-ctx.Done()
	return nil
}

// Get reads an object. The first call starts a watch of it.
func (c *Cache) Get(ctx context.Context, name client.ObjectKey, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	select {
	case <-c.started:
	case <-ctx.Done():
		return fmt.Errorf("read %s in the garden: the manager has not been started: %w", name, ctx.Err())
	}
	watch, err := c.watch(ctx, name, object)
	if err != nil {
		return fmt.Errorf("watch %s in the garden: %w", name, err)
	}
	if !watch.WaitForCacheSync(ctx) {
		return fmt.Errorf("read %s in the garden: %w", name, context.Cause(ctx))
	}
	return watch.Get(ctx, name, object)
}

// watch returns the cache with one object, and starts it if it does not exist.
func (c *Cache) watch(ctx context.Context, name client.ObjectKey, object client.Object) (cache.Cache, error) {
	kind, err := apiutil.GVKForObject(object, c.garden.GetScheme())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := key{kind.GroupKind(), name}
	if watch := c.watches[at]; watch != nil {
		return watch, nil
	}
	watch, err := cache.New(c.garden.GetConfig(), cache.Options{
		HTTPClient: c.garden.GetHTTPClient(), Scheme: c.garden.GetScheme(), Mapper: c.garden.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{object: only(name)},
	})
	if err != nil {
		return nil, err
	}
	informer, err := watch.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(c.handler()); err != nil {
		return nil, err
	}
	go func() { _ = watch.Start(c.running) }() // the reflectors log errors
	c.watches[at] = watch
	return watch, nil
}

// only selects one object by name, and by namespace if it has one.
func only(name client.ObjectKey) cache.ByObject {
	selector := fields.OneTermEqualSelector("metadata.name", name.Name)
	if name.Namespace == "" {
		return cache.ByObject{Field: selector}
	}
	return cache.ByObject{Namespaces: map[string]cache.Config{name.Namespace: {FieldSelector: selector}}}
}

// handler calls the functions of OnChange.
func (c *Cache) handler() toolscache.ResourceEventHandler {
	call := func(object any) {
		if tombstone, gone := object.(toolscache.DeletedFinalStateUnknown); gone {
			object = tombstone.Obj
		}
		changed, ok := object.(client.Object)
		if !ok {
			return
		}
		c.mu.Lock()
		calls := c.onChange
		c.mu.Unlock()
		for _, each := range calls {
			each(changed)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: call, DeleteFunc: call, UpdateFunc: func(before, after any) {
		old, ok := before.(client.Object)
		if changed, same := after.(client.Object); ok && same && old.GetResourceVersion() == changed.GetResourceVersion() {
			return
		}
		call(after)
	}}
}
