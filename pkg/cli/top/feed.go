package top

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// changes is what has changed.
type changes struct {
	// replaced says that items are all that there are.
	replaced bool
	// items are those that changed, or nil for those that are gone.
	items map[types.NamespacedName]*item
	// read is how many were read so far, before all were read once.
	read int
	// lost is why the cluster cannot be reached; nil if it can be.
	lost error
}

// feed follows ManagedResources by one watch, which begins anew when it breaks off.
type feed struct {
	source *console.Source
	choice console.Choice
	// options select what is watched.
	options []client.ListOption
	// news has something in it when there are changes.
	news chan struct{}

	mu      sync.Mutex
	changes changes
	// works says that a watch was begun once. Before that, what the cluster refuses is refused for good, which fails says.
	works bool
	fails error
}

// backoff is how long is waited before the cluster is asked again: a person waits.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 5 * time.Second}

func newFeed(source *console.Source, choice console.Choice, options []client.ListOption) *feed {
	return &feed{source: source, choice: choice, options: options, news: make(chan struct{}, 1)}
}

// run follows until the context ends.
func (f *feed) run(ctx context.Context) {
	listerWatcher := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	cache.NewReflectorWithOptions(listerWatcher, nil, f, cache.ReflectorOptions{Name: "top", Backoff: &backoff}).RunWithContext(ctx)
}

// take returns what has changed since it was called last, or why there is nothing to follow.
func (f *feed) take() (changes, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.changes
	f.changes.replaced, f.changes.items = false, nil
	return taken, f.fails
}

// change notes something.
func (f *feed) change(note func(*changes)) {
	f.mu.Lock()
	note(&f.changes)
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default: // that there is news is known
	}
}

// list reads ManagedResources of an API server that cannot list by a watch.
func (f *feed) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	err := f.source.List(ctx, list, f.with(options)...)
	if err != nil {
		f.noteError(ctx, err)
		return nil, err //nolint:wrapcheck // client-go looks at what kind of error it is
	}
	items := &itemList{ListMeta: list.ListMeta}
	for i := range list.Items {
		if f.choice.Includes(&list.Items[i]) {
			items.Items = append(items.Items, newItem(&list.Items[i]))
		}
	}
	f.change(func(c *changes) { c.read += len(items.Items) })
	return items, nil
}

func (f *feed) with(options metav1.ListOptions) []client.ListOption {
	return append(slices.Clone(f.options), &client.ListOptions{Raw: &options, Limit: options.Limit, Continue: options.Continue})
}

func (f *feed) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	watcher, err := f.source.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, f.with(options)...)
	if err != nil {
		if unsupported := options.SendInitialEvents != nil && apierrors.IsInvalid(err); !unsupported {
			f.noteError(ctx, err)
		}
		return nil, err //nolint:wrapcheck // client-go looks at what kind of error it is
	}
	f.change(func(c *changes) { c.lost, c.read, f.works = nil, 0, true })
	return watch.Filter(watcher, f.reduce), nil
}

// reduce has the rest of what is watched go by as items.
func (f *feed) reduce(event watch.Event) (watch.Event, bool) {
	mr, is := event.Object.(*resourcesv1alpha1.ManagedResource)
	if !is || event.Type == watch.Bookmark {
		return event, true
	}
	event.Object = newItem(mr)
	if !f.choice.Includes(mr) { // any more
		event.Type = watch.Deleted
	}
	f.change(func(c *changes) { c.read++ })
	return event, true
}

// noteError notes that the cluster did not answer as it should.
func (f *feed) noteError(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the reflector lists anew
		return
	}
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || console.HasNoKind(err)
	f.change(func(c *changes) {
		c.lost = err
		if refused && !f.works {
			f.fails = err
		}
	})
}

// Add takes in an item; it is one of the methods by which client-go tells what there is.
func (f *feed) Add(object any) error { return f.note(object, false) }

// Update takes in an item that has changed.
func (f *feed) Update(object any) error { return f.note(object, false) }

// Delete takes in that an item is gone.
func (f *feed) Delete(object any) error { return f.note(object, true) }

func (f *feed) note(object any, gone bool) error {
	is, isItem := object.(*item)
	if !isItem {
		return fmt.Errorf("a %T was watched instead of a ManagedResource", object)
	}
	f.change(func(c *changes) {
		if c.items == nil {
			c.items = map[types.NamespacedName]*item{}
		}
		if c.items[is.name()] = is; gone {
			c.items[is.name()] = nil
		}
	})
	return nil
}

// Replace takes in all that there are.
func (f *feed) Replace(objects []any, _ string) error {
	all := make(map[types.NamespacedName]*item, len(objects))
	for _, object := range objects {
		if is, isItem := object.(*item); isItem {
			all[is.name()] = is
		}
	}
	f.change(func(c *changes) { c.replaced, c.items = true, all })
	return nil
}

// Resync does nothing: nobody asks for it.
func (f *feed) Resync() error { return nil }
