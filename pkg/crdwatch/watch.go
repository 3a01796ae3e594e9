// Package crdwatch watches objects of kinds that CustomResourceDefinitions define: while the definition is there, which may come and
// go at run time.
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

// servedWithin are the delays in which the API server gets to serve a kind that was just defined.
var servedWithin = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8}

// Kinds reports which kinds a cluster has.
type Kinds interface {
	// Serves asks the API server whether it serves a kind. An error means that it could not be found out.
	Serves(gvk schema.GroupVersionKind) (bool, error)
}

// Options say what is watched.
type Options struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    Kinds
	// Namespaces are those that are watched; metav1.NamespaceAll for all.
	Namespaces []string
	// Resource and Kind are what the definition "<resource>.<group>" defines.
	Resource schema.GroupVersionResource
	Kind     string
	// LabelSelector selects the objects that are watched; empty for all.
	LabelSelector string
	// Reduce returns what is kept of an object. It has to have the object's metadata, as far as it is needed.
	Reduce   func(*unstructured.Unstructured) any
	Indexers toolscache.Indexers
	// OnEvent is called with the reduced object when one comes or goes, and with both when one changes.
	OnEvent func(object any)
	// OnKnown is called whenever it may have become known which objects there are.
	OnKnown func()
	// Affected is what stays as it is while the kind is defined, but not served; for the log.
	Affected string
}

// Watch watches the objects of one kind while its CustomResourceDefinition is there. It is safe for concurrent use.
type Watch struct {
	Options

	definition toolscache.SharedIndexInformer

	mu sync.Mutex
	// informers are those of each namespace; nil while the kind is not defined, or not served yet.
	informers []toolscache.SharedIndexInformer
	// defined is set while there is a definition.
	defined bool
	// stop ends the informers.
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

// Start begins to watch whether the kind is defined, until the context ends. It returns at once.
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

// begin starts to watch the objects, unless they are watched.
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
		informer := dynamicinformer.NewFilteredDynamicInformer(w.Dynamic, w.Resource, namespace, 0, w.Indexers, func(options *metav1.ListOptions) {
			options.LabelSelector = w.LabelSelector
		}).Informer()
		registration, err := w.observe(informer)
		if err != nil {
			return // an informer that has not been started takes everything
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

// waitUntilServed reports whether the API server serves the kind, which is defined.
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

// giveUp has the next event of the definition try again.
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

// end stops to watch objects of a kind that is not defined any more.
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
		return len(w.definition.GetStore().ListKeys()) == 0 // otherwise, the event is on its way
	}
	return len(w.informers) > 0 && !slices.ContainsFunc(w.informers, func(i toolscache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Exists reports whether the cluster has the kind, as far as that is known.
func (w *Watch) Exists() bool { return len(w.running()) > 0 }

func (w *Watch) running() []toolscache.SharedIndexInformer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.informers
}

// List returns all objects, reduced.
func (w *Watch) List() []any {
	var objects []any
	for _, informer := range w.running() {
		objects = append(objects, informer.GetStore().List()...)
	}
	return objects
}

// ByIndex returns the objects that one of the Indexers has for a value.
func (w *Watch) ByIndex(index, value string) []any {
	var objects []any
	for _, informer := range w.running() {
		found, err := informer.GetIndexer().ByIndex(index, value)
		if err == nil { // it fails for unknown indexes alone
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
