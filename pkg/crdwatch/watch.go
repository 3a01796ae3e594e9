// Package crdwatch watches objects of kinds that CustomResourceDefinitions define. The definition may be created and
// deleted at run time.
package crdwatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// servedWithin is the backoff while waiting for the API server to serve a newly defined kind.
var servedWithin = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8}

// Kinds reports which kinds a cluster has.
type Kinds interface {
	// Serves reports whether the API server serves a kind. An error means that the answer is not known.
	Serves(gvk schema.GroupVersionKind) (bool, error)
}

// Options define the objects to watch.
type Options struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    Kinds
	// Namespaces are the watched namespaces; metav1.NamespaceAll for all.
	Namespaces []string
	// Resource and Kind are defined by the CustomResourceDefinition "<resource>.<group>".
	Resource schema.GroupVersionResource
	Kind     string
	// LabelSelector selects the watched objects; empty for all.
	LabelSelector string
	// Reduce returns the stored form of an object. It must include the required metadata.
	Reduce   func(*unstructured.Unstructured) any
	Indexers toolscache.Indexers
	// OnEvent is called with the reduced object when one is created or deleted, and with both versions when one changes.
	OnEvent func(object any)
	// OnKnown is called whenever the set of objects may have become known.
	OnKnown func()
	// Affected names the objects that stay unchanged while the kind is defined, but not served. It is for the log.
	Affected string
}

// Watch watches the objects of one kind while its CustomResourceDefinition exists. It is safe for concurrent use.
type Watch struct {
	Options

	definition toolscache.SharedIndexInformer

	mu sync.Mutex
	// informers has one informer per namespace. It is nil while the kind is not defined or not served.
	informers []toolscache.SharedIndexInformer
	// defined is set while the definition exists.
	defined bool
	// stop stops the informers.
	stop context.CancelFunc
}

// New returns a watch that has not been started.
func New(options Options) *Watch {
	name := options.definition()
	return &Watch{
		Options: options,
		definition: metadatainformer.NewFilteredMetadataInformer(options.Metadata, definitions, metav1.NamespaceAll, 0, toolscache.Indexers{},
			func(list *metav1.ListOptions) {
				list.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
			}).Informer(),
	}
}

// definition returns the name of the CustomResourceDefinition.
func (o Options) definition() string { return o.Resource.Resource + "." + o.Resource.Group }

// Start starts to watch the definition until the context ends. It does not block.
func (w *Watch) Start(ctx context.Context) error {
	registration, err := w.definition.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.begin(ctx) },
		UpdateFunc: func(_, _ any) { w.begin(ctx) },
		DeleteFunc: func(any) { w.end() },
	})
	if err != nil {
		return fmt.Errorf("watch the definition %s: %w", w.Options.definition(), err)
	}
	go w.definition.RunWithContext(ctx)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.OnKnown()
		}
	}()
	return nil
}

// begin starts to watch the objects, unless they are already watched.
func (w *Watch) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		return
	}
	w.defined = true
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx)
}

func (w *Watch) run(ctx context.Context) {
	if !w.waitUntilServed(ctx) {
		w.giveUp()
		return
	}
	var informers []toolscache.SharedIndexInformer
	var synced []toolscache.InformerSynced
	for _, namespace := range w.Namespaces {
		informer := dynamicinformer.NewFilteredDynamicInformer(w.Dynamic, w.Resource, namespace, 0, w.Indexers,
			func(options *metav1.ListOptions) { options.LabelSelector = w.LabelSelector }).Informer()
		registration, err := w.observe(informer)
		if err != nil {
			return // does not happen: informers that were not started accept all handlers
		}
		informers, synced = append(informers, informer), append(synced, registration.HasSynced)
	}
	w.mu.Lock()
	if ctx.Err() == nil {
		w.informers = informers
	}
	w.mu.Unlock()
	for _, informer := range informers {
		go informer.RunWithContext(ctx)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		w.OnKnown()
	}
}

// waitUntilServed waits until the API server serves the defined kind, and reports whether it does.
func (w *Watch) waitUntilServed(ctx context.Context) bool {
	kind := w.Resource.GroupVersion().WithKind(w.Kind)
	err := wait.ExponentialBackoffWithContext(ctx, servedWithin, func(context.Context) (bool, error) {
		served, err := w.Kinds.Serves(kind)
		return served && err == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "The kind is defined, but not served in this version: dependent objects are left unchanged",
			"kind", kind.String(), "dependent", w.Affected)
	}
	return err == nil
}

// giveUp makes the next event of the definition try again.
func (w *Watch) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = nil
}

func (w *Watch) observe(informer toolscache.SharedIndexInformer) (toolscache.ResourceEventHandlerRegistration, error) {
	if err := informer.SetTransform(cachetransform.Of(w.Reduce)); err != nil {
		return nil, err
	}
	return informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { w.OnEvent(object) },
		UpdateFunc: func(before, after any) {
			w.OnEvent(before)
			w.OnEvent(after)
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			w.OnEvent(object)
		},
	})
}

// end stops watching objects after their definition was deleted.
func (w *Watch) end() {
	objects := w.List()
	w.mu.Lock()
	if w.stop != nil {
		w.stop()
	}
	w.informers, w.defined, w.stop = nil, false, nil
	w.mu.Unlock()
	for _, object := range objects {
		w.OnEvent(object)
	}
	w.OnKnown()
}

// Known reports whether the set of objects is known. It is also known if the kind does not exist.
func (w *Watch) Known() bool {
	if !w.definition.HasSynced() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.defined {
		return len(w.definition.GetStore().ListKeys()) == 0 // otherwise, the event of the definition is pending
	}
	return len(w.informers) > 0 && !slices.ContainsFunc(w.informers, func(i toolscache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Exists reports whether the cluster is known to serve the kind.
func (w *Watch) Exists() bool { return len(w.running()) > 0 }

func (w *Watch) running() []toolscache.SharedIndexInformer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.informers
}

// List returns all objects in reduced form.
func (w *Watch) List() []any {
	var objects []any
	for _, informer := range w.running() {
		objects = append(objects, informer.GetStore().List()...)
	}
	return objects
}

// ByIndex returns the objects with a value in one of the Indexers.
func (w *Watch) ByIndex(index, value string) []any {
	var objects []any
	for _, informer := range w.running() {
		found, err := informer.GetIndexer().ByIndex(index, value)
		if err == nil { // it fails for unknown indexes only
			objects = append(objects, found...)
		}
	}
	return objects
}

// Get returns an object; nil if it does not exist.
func (w *Watch) Get(name types.NamespacedName) any {
	for _, informer := range w.running() {
		if object, found, err := informer.GetStore().GetByKey(toolscache.NewObjectName(name.Namespace, name.Name).String()); found && err == nil {
			return object
		}
	}
	return nil
}
