// Package gardenobjects reads single objects of the garden, such as credentials of a Seed, through individual watches.
// gardenlet has no permission to list all of them, and sends no requests while they do not change. A watch ends with its
// last user.
package gardenobjects

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// User is an object for which others are read, such as a Shoot that refers to Secrets.
type User struct {
	// Kind of the user.
	Kind string
	client.ObjectKey
}

// Cache contains the objects that users have read. It is a runnable of a manager.
type Cache struct {
	garden cluster.Cluster

	// started is closed once running, the context of the watches, is set.
	started chan struct{}
	running context.Context //nolint:containedctx // the watches run longer than the calls that start them

	mu       sync.Mutex
	watches  map[key]*watch
	onChange []func(client.Object)
	// passes are the numbers of the current passes of users: see Begin.
	passes map[User]uint64
}

// watch is the watch of one object.
type watch struct {
	cache.Cache

	end context.CancelFunc
	// denied is closed when the garden refuses to list the object for the first time. refusal is the last such error.
	denied  chan struct{}
	deny    sync.Once
	refusal atomic.Pointer[error]
	// users are the users of the object, with the number of the pass that last read it.
	users map[User]uint64
}

type key struct {
	kind schema.GroupKind
	name client.ObjectKey
}

// New returns a cache of a garden.
func New(garden cluster.Cluster) *Cache {
	return &Cache{garden: garden, started: make(chan struct{}), watches: map[key]*watch{}, passes: map[User]uint64{}}
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

// Begin starts a pass in which a user reads all objects that it needs. The returned function ends the pass, and the watches
// of all objects that it has not read. Do not call it if a failure has prevented reads. There is at most one pass of a user at
// a time.
func (c *Cache) Begin(user User) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passes[user]++
	current := c.passes[user]
	return func() { c.releaseBefore(user, current) }
}

// Release ends the watches of all objects that only this user has read. Call it when the user is deleted.
func (c *Cache) Release(user User) {
	c.releaseBefore(user, math.MaxUint64)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.passes, user)
}

// releaseBefore makes a user release the objects that it has last read before a pass.
func (c *Cache) releaseBefore(user User, pass uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, watched := range c.watches {
		if last, uses := watched.users[user]; uses && last < pass {
			delete(watched.users, user)
		}
		if len(watched.users) == 0 {
			watched.end()
			delete(c.watches, at)
		}
	}
}

// Get reads an object for a user. The first call starts a watch of it, which runs until all users have released it.
func (c *Cache) Get(ctx context.Context, user User, name client.ObjectKey, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	select {
	case <-c.started:
	case <-ctx.Done():
		return fmt.Errorf("read %s in the garden: the manager has not been started: %w", name, ctx.Err())
	}
	watched, err := c.watch(ctx, user, name, object)
	if err != nil {
		return fmt.Errorf("watch %s in the garden: %w", name, err)
	}
	if err := watched.await(ctx); err != nil {
		return fmt.Errorf("read %s in the garden: %w", name, err)
	}
	return watched.Get(ctx, name, object)
}

// await waits for the first list. After a refusal it does not wait for the next attempt, which may be half a minute later.
func (w *watch) await(ctx context.Context) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-w.denied:
			stop()
		case <-waiting.Done():
		}
	}()
	if w.WaitForCacheSync(waiting) {
		return nil
	}
	if refusal := w.refusal.Load(); refusal != nil {
		return *refusal
	}
	return context.Cause(ctx)
}

// onError records that the garden refuses to list the object, and logs the error.
func (w *watch) onError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) {
		w.refusal.Store(&err)
		w.deny.Do(func() { close(w.denied) })
	}
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
}

// watch returns the watch of one object, with the user as one of its users. It starts the watch if it does not exist.
//
//nolint:contextcheck // a watch runs longer than the call that starts it
func (c *Cache) watch(ctx context.Context, user User, name client.ObjectKey, object client.Object) (*watch, error) {
	kind, err := apiutil.GVKForObject(object, c.garden.GetScheme())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := key{kind.GroupKind(), name}
	if watched := c.watches[at]; watched != nil {
		watched.users[user] = c.passes[user]
		return watched, nil
	}
	started := &watch{users: map[User]uint64{user: c.passes[user]}, denied: make(chan struct{})}
	made, err := cache.New(c.garden.GetConfig(), cache.Options{
		HTTPClient: c.garden.GetHTTPClient(), Scheme: c.garden.GetScheme(), Mapper: c.garden.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(), DefaultWatchErrorHandler: started.onError,
		ByObject: map[client.Object]cache.ByObject{object: only(name)},
	})
	if err != nil {
		return nil, err
	}
	informer, err := made.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(c.handler()); err != nil {
		return nil, err
	}
	running, end := context.WithCancel(c.running)
	go func() { _ = made.Start(running) }() // the reflectors log errors
	started.Cache, started.end = made, end
	c.watches[at] = started
	return started, nil
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
