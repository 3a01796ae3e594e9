// Package feed follows ManagedResources by one watch, which begins anew when it breaks off, and keeps of each no more than a summary: of
// many, what they are made of would take too much memory.
package feed

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

// Meta is what client-go has to know of a summary, which embeds it.
type Meta struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// MetaOf returns it for a ManagedResource.
func MetaOf(mr *resourcesv1alpha1.ManagedResource) Meta {
	return Meta{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name, UID: mr.UID, ResourceVersion: mr.ResourceVersion}}
}

// FullName returns namespace and name.
func (m *Meta) FullName() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// Sink takes in what there is, as summaries. Its methods are called by one goroutine, one after the other.
type Sink interface {
	cache.ReflectorStore
	// Began takes in that the cluster answers: from now on, changes come at once.
	Began()
	// Read takes in that so many more were read, before they come.
	Read(count int)
	// Failed takes in that the cluster did not answer as it should. It is asked again.
	Failed(err error)
}

// Feed is what is followed.
type Feed[T runtime.Object] struct {
	// Name is that of the watch in the log of client-go.
	Name   string
	Source *console.Source
	// Choice and Options select ManagedResources: the API server knows no classes.
	Choice  console.Choice
	Options []client.ListOption
	// Summarize returns what is kept of a ManagedResource.
	Summarize func(*resourcesv1alpha1.ManagedResource) T
	Sink      Sink
}

// backoff is how long is waited before the cluster is asked again: a person waits.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 5 * time.Second}

// Run follows until the context ends.
func (f *Feed[T]) Run(ctx context.Context) {
	listerWatcher := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	cache.NewReflectorWithOptions(listerWatcher, nil, f.Sink, cache.ReflectorOptions{Name: f.Name, Backoff: &backoff}).RunWithContext(ctx)
}

// summaries is a list for client-go.
type summaries[T runtime.Object] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []T
}

// DeepCopyObject makes it an object for client-go. Nobody changes it, so it is its own copy.
func (s *summaries[T]) DeepCopyObject() runtime.Object { return s }

// list reads ManagedResources of an API server that cannot list by a watch.
func (f *Feed[T]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := f.Source.List(ctx, list, f.with(options)...); err != nil {
		f.fail(ctx, err)
		return nil, err //nolint:wrapcheck // client-go looks at what kind of error it is
	}
	found := &summaries[T]{ListMeta: list.ListMeta}
	for i := range list.Items {
		if f.Choice.Includes(&list.Items[i]) {
			found.Items = append(found.Items, f.Summarize(&list.Items[i]))
		}
	}
	f.Sink.Read(len(found.Items))
	return found, nil
}

func (f *Feed[T]) with(options metav1.ListOptions) []client.ListOption {
	return append(slices.Clone(f.Options), &client.ListOptions{Raw: &options, Limit: options.Limit, Continue: options.Continue})
}

func (f *Feed[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	watcher, err := f.Source.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, f.with(options)...)
	if err != nil {
		if unsupported := options.SendInitialEvents != nil && apierrors.IsInvalid(err); !unsupported {
			f.fail(ctx, err)
		}
		return nil, err //nolint:wrapcheck // client-go looks at what kind of error it is
	}
	f.Sink.Began()
	return watch.Filter(watcher, f.reduce), nil
}

// reduce has the rest of what is watched go by as summaries.
func (f *Feed[T]) reduce(event watch.Event) (watch.Event, bool) {
	mr, is := event.Object.(*resourcesv1alpha1.ManagedResource)
	if !is || event.Type == watch.Bookmark {
		return event, true
	}
	event.Object = f.Summarize(mr)
	if !f.Choice.Includes(mr) { // any more
		event.Type = watch.Deleted
	}
	f.Sink.Read(1)
	return event, true
}

func (f *Feed[T]) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the reflector lists anew
		return
	}
	f.Sink.Failed(err)
}
