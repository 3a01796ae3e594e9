package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// ByObject returns the options of a cache of the kinds of [Table]. Objects are reduced to what their edges follow from.
func ByObject() map[client.Object]cache.ByObject {
	options := map[client.Object]cache.ByObject{}
	for _, row := range Table() {
		options[row.New()] = cache.ByObject{Transform: cachetransform.Of(row.Reduce)}
	}
	return options
}

// Kinds returns an empty object for each kind of [Table].
func Kinds() []client.Object {
	var objects []client.Object
	for _, row := range Table() {
		objects = append(objects, row.New())
	}
	return objects
}

// Watcher keeps a graph up to date.
type Watcher struct {
	graph *Graph
	clock clock.PassiveClock

	// mu protects the fields below, and orders changes of objects whose edges follow from several kinds.
	mu sync.Mutex
	// registrations are those of the Seeds.
	registrations map[string]*Registration
	// dependent are the ManagedSeeds and Gardenlets, whose edges also follow from the Seed of the same name.
	dependent map[string]map[Vertex]client.Object
	synced    []kindSynced
}

// kindSynced reports whether the graph has all objects of a kind.
type kindSynced struct {
	kind   Kind
	synced func() bool
}

// NewWatcher returns a watcher of a graph.
func NewWatcher(graph *Graph, clock clock.PassiveClock) *Watcher {
	return &Watcher{graph: graph, clock: clock, registrations: map[string]*Registration{}, dependent: map[string]map[Vertex]client.Object{}}
}

// Watch starts the watches, until the cache stops. It does not wait for the first objects.
func (w *Watcher) Watch(ctx context.Context, informers cache.Informers) error {
	for _, row := range Table() {
		informer, err := informers.GetInformer(ctx, row.New(), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch the %ss of the garden: %w", row.Kind, err)
		}
		registration, err := informer.AddEventHandler(w.handler(row))
		if err != nil {
			return fmt.Errorf("watch the %ss of the garden: %w", row.Kind, err)
		}
		w.synced = append(w.synced, kindSynced{row.Kind, registration.HasSynced})
	}
	return nil
}

// Ready returns an error that names a kind whose objects are not all in the graph yet.
func (w *Watcher) Ready() error {
	if len(w.synced) == 0 {
		return errors.New("the graph of the garden's objects is empty yet")
	}
	for _, one := range w.synced {
		if !one.synced() {
			return fmt.Errorf("the graph does not have all %ss of the garden yet", one.kind)
		}
	}
	return nil
}

func (w *Watcher) handler(row Row) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.observe(row, object, false) },
		UpdateFunc: func(_, object any) { w.observe(row, object, false) },
		DeleteFunc: func(object any) { w.observe(row, object, true) },
	}
}

func (w *Watcher) observe(row Row, observed any, gone bool) {
	if tombstone, is := observed.(toolscache.DeletedFinalStateUnknown); is {
		observed = tombstone.Obj
	}
	if object, is := observed.(client.Object); is {
		w.Observe(row, object, gone)
	}
}

// Observe updates the graph with an object of a row, or removes it.
func (w *Watcher) Observe(row Row, object client.Object, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	source := vertexOf(row.Kind, object)
	switch object := object.(type) {
	case *corev1beta1.Seed:
		delete(w.registrations, object.Name)
		if !gone {
			w.registrations[object.Name] = RegistrationOf(object)
		}
		for vertex, dependent := range w.dependent[object.Name] {
			w.set(rowOf(vertex.Kind), vertex, dependent)
		}
	case *seedmanagementv1alpha1.ManagedSeed, *seedmanagementv1alpha1.Gardenlet:
		w.depend(source, object, gone)
	}
	if gone {
		w.graph.Set(source, nil)
		return
	}
	w.set(row, source, object)
}

// depend remembers an object whose edges follow from the Seed of the same name.
func (w *Watcher) depend(source Vertex, object client.Object, gone bool) {
	if gone {
		delete(w.dependent[source.Name], source)
		return
	}
	if w.dependent[source.Name] == nil {
		w.dependent[source.Name] = map[Vertex]client.Object{}
	}
	w.dependent[source.Name][source] = object
}

func (w *Watcher) set(row Row, source Vertex, object client.Object) {
	w.graph.Set(source, row.Edges(object, Facts{
		Registration: func(seed string) *Registration { return w.registrations[seed] }, Now: w.clock.Now(),
	}))
}

// rowOf returns the row of a kind.
func rowOf(kind Kind) Row {
	for _, row := range Table() {
		if row.Kind == kind {
			return row
		}
	}
	return Row{Edges: func(client.Object, Facts) []Edge { return nil }}
}

// Refresh computes the edges of ManagedSeeds and Gardenlets again, because certificates expire without an event.
func (w *Watcher) Refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, objects := range w.dependent {
		for vertex, object := range objects {
			w.set(rowOf(vertex.Kind), vertex, object)
		}
	}
}

// refreshInterval is how late the expiry of a certificate may be noticed.
const refreshInterval = time.Minute

// NeedLeaderElection returns false, because each replica has its own graph.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start refreshes the graph until the context ends.
func (w *Watcher) Start(ctx context.Context) error {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			w.Refresh()
		}
	}
}
