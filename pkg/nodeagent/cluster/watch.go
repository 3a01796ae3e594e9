package cluster

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Watched is the current state of one object. Its methods may be called concurrently.
type Watched[T any] struct {
	mu      sync.Mutex
	object  *T
	known   bool
	changed []func()
}

// OnChange adds a function that is called after each change. It must not block.
func (w *Watched[T]) OnChange(changed func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, changed)
}

// Get returns the object, which must not be changed, or nil if it does not exist. known is false until it was read.
func (w *Watched[T]) Get() (object *T, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object, w.known
}

func (w *Watched[T]) set(object *T, known bool) {
	w.mu.Lock()
	w.object, w.known = object, known
	changed := w.changed
	w.mu.Unlock()
	for _, each := range changed {
		each()
	}
}

// run watches the only object that two selectors match until the context ends.
func run[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, client rest.Interface, resource, namespace, fieldSelector, labelSelector string, kind P, into *Watched[T]) {
	list := cache.NewFilteredListWatchFromClient(client, resource, namespace, func(options *metav1.ListOptions) {
		options.FieldSelector, options.LabelSelector = fieldSelector, labelSelector
	})
	var (
		store    cache.Store
		informer cache.Controller
		mu       sync.Mutex
	)
	// Of two calls at once, the second one sees what the first one saw, or later changes.
	refresh := func() {
		if !informer.HasSynced() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		var current P
		if objects := store.List(); len(objects) > 0 {
			current, _ = objects[0].(P)
		}
		into.set(current, true)
	}
	store, informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: list, ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { refresh() },
			UpdateFunc: func(any, any) { refresh() },
			DeleteFunc: func(any) { refresh() },
		},
	})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			refresh()
		}
	})
	informer.RunWithContext(ctx)
	waiting.Wait()
}
