package ui

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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// mostGone is how many ManagedResources that are gone are remembered, for pages that are behind. A page that is further behind gets
// all anew.
const mostGone = 1000

// feed follows ManagedResources by one watch for all pages. It begins anew when it breaks off.
type feed struct {
	source *console.Source
	choice console.Choice
	// options select what is watched.
	options []client.ListOption
	clock   clock.PassiveClock

	mu      sync.Mutex
	records map[types.NamespacedName]*record
	// sequence counts changes.
	sequence uint64
	gone     []departure
	// forgotten is the sequence of the last departure that is not remembered any more.
	forgotten uint64
	history   history
	// loaded says that all were read once, read how many have been until then.
	loaded bool
	read   int
	// lost is why the cluster cannot be reached, and since when; nil if it can be.
	lost      error
	lostSince time.Time
	// changed is closed with the next change.
	changed chan struct{}
}

type departure struct {
	name     types.NamespacedName
	sequence uint64
}

// backoff is how long is waited before the cluster is asked again: a person waits.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 5 * time.Second}

func newFeed(source *console.Source, choice console.Choice, options []client.ListOption, clock clock.PassiveClock) *feed {
	return &feed{
		source: source, choice: choice, options: options, clock: clock, records: map[types.NamespacedName]*record{}, changed: make(chan struct{}),
	}
}

// run follows until the context ends.
func (f *feed) run(ctx context.Context) {
	listerWatcher := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	cache.NewReflectorWithOptions(listerWatcher, nil, f, cache.ReflectorOptions{Name: "ui", Backoff: &backoff}).RunWithContext(ctx)
}

// News is what a page that has seen some of the changes has to be told.
type News struct {
	// Sequence is what the page is to ask from the next time.
	Sequence uint64 `json:"sequence"`
	// Reset says that rows are all that there are.
	Reset bool                   `json:"reset,omitempty"`
	Rows  []Row                  `json:"rows,omitempty"`
	Gone  []types.NamespacedName `json:"gone,omitempty"`
	// Loaded says that all were read once, Read how many have been until then.
	Loaded bool `json:"loaded"`
	Read   int  `json:"read,omitempty"`
	// Lost says why the cluster cannot be reached, LostSince since when.
	Lost      string `json:"lost,omitempty"`
	LostSince int64  `json:"lostSince,omitempty"`
	Now       int64  `json:"now"`
}

// since returns what changed after a sequence, 0 for all, and what is closed when there is more.
func (f *feed) since(sequence uint64, explain func(error) string) (News, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := News{
		Sequence: f.sequence, Reset: sequence == 0 || sequence < f.forgotten || sequence > f.sequence, Loaded: f.loaded, Now: seconds(f.clock.Now()),
	}
	if !f.loaded {
		news.Read = f.read
	}
	if f.lost != nil {
		news.Lost, news.LostSince = explain(f.lost), seconds(f.lostSince)
	}
	for _, record := range f.records {
		if news.Reset || record.sequence > sequence {
			news.Rows = append(news.Rows, record.row)
		}
	}
	if !news.Reset {
		for _, departure := range f.gone {
			if departure.sequence > sequence && f.records[departure.name] == nil {
				news.Gone = append(news.Gone, departure.name)
			}
		}
	}
	return news, f.changed
}

// historyOf returns what changed about a ManagedResource, the latest first.
func (f *feed) historyOf(name types.NamespacedName) []Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.history.of(name)
}

// change notes something, and wakes whoever waits.
func (f *feed) change(note func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sequence++
	note()
	close(f.changed)
	f.changed = make(chan struct{})
}

// list reads ManagedResources of an API server that cannot list by a watch.
func (f *feed) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	err := f.source.List(ctx, list, f.with(options)...)
	if err != nil {
		f.noteError(ctx, err)
		return nil, err //nolint:wrapcheck // client-go looks at what kind of error it is
	}
	records := &recordList{ListMeta: list.ListMeta}
	for i := range list.Items {
		if f.choice.Includes(&list.Items[i]) {
			records.Items = append(records.Items, recordOf(&list.Items[i]))
		}
	}
	f.change(func() { f.read += len(records.Items) })
	return records, nil
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
	f.change(func() { f.lost, f.read = nil, 0 })
	return watch.Filter(watcher, f.reduce), nil
}

// reduce has the rest of what is watched go by as records.
func (f *feed) reduce(event watch.Event) (watch.Event, bool) {
	mr, is := event.Object.(*resourcesv1alpha1.ManagedResource)
	if !is || event.Type == watch.Bookmark {
		return event, true
	}
	event.Object = recordOf(mr)
	if !f.choice.Includes(mr) { // any more
		event.Type = watch.Deleted
	}
	f.mu.Lock()
	f.read++
	f.mu.Unlock()
	return event, true
}

// noteError notes that the cluster did not answer as it should.
func (f *feed) noteError(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the reflector lists anew
		return
	}
	f.change(func() {
		if f.lost == nil {
			f.lostSince = f.clock.Now()
		}
		f.lost = err
	})
}

// Add takes in a record; it is one of the methods by which client-go tells what there is.
func (f *feed) Add(object any) error { return f.take(object) }

// Update takes in a record that has changed.
func (f *feed) Update(object any) error { return f.take(object) }

func (f *feed) take(object any) error {
	taken, is := object.(*record)
	if !is {
		return fmt.Errorf("a %T was watched instead of a ManagedResource", object)
	}
	f.change(func() { f.put(taken) })
	return nil
}

// put takes in a record with the present sequence.
func (f *feed) put(taken *record) {
	before := f.records[taken.name()]
	if before != nil && before.ResourceVersion == taken.ResourceVersion {
		return
	}
	if f.loaded {
		f.history.add(differences(before, taken, f.clock.Now()))
	}
	taken.sequence = f.sequence
	f.records[taken.name()] = taken
}

// Delete takes in that a record is gone.
func (f *feed) Delete(object any) error {
	taken, is := object.(*record)
	if !is {
		return fmt.Errorf("a %T was watched instead of a ManagedResource", object)
	}
	f.change(func() { f.remove(taken.name()) })
	return nil
}

func (f *feed) remove(name types.NamespacedName) {
	before := f.records[name]
	if before == nil {
		return
	}
	f.history.add(differences(before, nil, f.clock.Now()))
	delete(f.records, name)
	f.gone = append(f.gone, departure{name, f.sequence})
	if len(f.gone) > mostGone {
		f.forgotten = f.gone[0].sequence
		f.gone = slices.Delete(f.gone, 0, 1)
	}
}

// Replace takes in all that there are.
func (f *feed) Replace(objects []any, _ string) error {
	f.change(func() {
		there := make(map[types.NamespacedName]bool, len(objects))
		for _, object := range objects {
			if taken, is := object.(*record); is {
				there[taken.name()] = true
				f.put(taken)
			}
		}
		for name := range f.records {
			if !there[name] {
				f.remove(name)
			}
		}
		f.loaded = true
	})
	return nil
}

// Resync does nothing: nobody asks for it.
func (f *feed) Resync() error { return nil }
