// Package watch watches ManagedResources, restarts the watch when it ends, and keeps only a summary of each
// ManagedResource. Complete
// objects would take too much memory in a large fleet.
package watch

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Meta holds the metadata that client-go needs. Summaries embed it.
type Meta struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// MetaOf returns the metadata of a ManagedResource.
func MetaOf(mr *resourcesv1alpha1.ManagedResource) Meta {
	return Meta{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name, UID: mr.UID, ResourceVersion: mr.ResourceVersion}}
}

// FullName returns namespace and name.
func (m *Meta) FullName() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// Sink receives the summaries. One goroutine calls its methods sequentially.
type Sink interface {
	cache.ReflectorStore
	// OnSynced is called when a watch starts. From then on, changes arrive immediately.
	OnSynced()
	// OnProgress is called with the number of ManagedResources just read, before they are passed to the sink.
	OnProgress(count int)
	// OnError is called when a request to the cluster fails. The request is retried.
	OnError(err error)
}

// Watcher follows the selected ManagedResources.
type Watcher[T runtime.Object] struct {
	// Name identifies the watch in client-go's logs.
	Name   string
	Source *console.Source
	// Choice and Options select ManagedResources. Choice is applied here, because the API server cannot select by class.
	Choice  console.Choice
	Options []client.ListOption
	// Summarize returns the summary of a ManagedResource.
	Summarize func(*resourcesv1alpha1.ManagedResource) T
	Sink      Sink
}

// backoff is the delay before a retry. It is short because a user is waiting.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 5 * time.Second}

// Run watches ManagedResources until the context is canceled.
func (w *Watcher[T]) Run(ctx context.Context) {
	listerWatcher := &cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}
	cache.NewReflectorWithOptions(listerWatcher, nil, w.Sink, cache.ReflectorOptions{Name: w.Name, Backoff: &backoff}).RunWithContext(ctx)
}

// summaries is the list type that client-go receives.
type summaries[T runtime.Object] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []T
}

// DeepCopyObject implements runtime.Object. The list is never modified, so it is its own copy.
func (s *summaries[T]) DeepCopyObject() runtime.Object { return s }

// list reads ManagedResources from an API server that does not support streaming lists.
func (w *Watcher[T]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := w.Source.List(ctx, list, w.with(options)...); err != nil {
		w.fail(ctx, err)
		return nil, err //nolint:wrapcheck // client-go inspects the type of the error
	}
	found := &summaries[T]{ListMeta: list.ListMeta}
	for i := range list.Items {
		if w.Choice.Includes(&list.Items[i]) {
			found.Items = append(found.Items, w.Summarize(&list.Items[i]))
		}
	}
	w.Sink.OnProgress(len(found.Items))
	return found, nil
}

func (w *Watcher[T]) with(options metav1.ListOptions) []client.ListOption {
	return append(slices.Clone(w.Options), &client.ListOptions{Raw: &options, Limit: options.Limit, Continue: options.Continue})
}

func (w *Watcher[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	watcher, err := w.Source.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, w.with(options)...)
	if err != nil {
		if unsupported := options.SendInitialEvents != nil && apierrors.IsInvalid(err); !unsupported {
			w.fail(ctx, err)
		}
		return nil, err //nolint:wrapcheck // client-go inspects the type of the error
	}
	w.Sink.OnSynced()
	return watch.Filter(watcher, w.reduce), nil
}

// reduce replaces ManagedResources in watch events by their summaries.
func (w *Watcher[T]) reduce(event watch.Event) (watch.Event, bool) {
	mr, is := event.Object.(*resourcesv1alpha1.ManagedResource)
	if !is || event.Type == watch.Bookmark {
		return event, true
	}
	event.Object = w.Summarize(mr)
	if !w.Choice.Includes(mr) { // it was included before
		event.Type = watch.Deleted
	}
	w.Sink.OnProgress(1)
	return event, true
}

func (w *Watcher[T]) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the reflector lists again
		return
	}
	w.Sink.OnError(err)
}
