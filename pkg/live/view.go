package live

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// definitions is the kind CustomResourceDefinition.
var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// View is a view of the objects in the target cluster that have the managed-by label. It uses one watch for each kind
// in use. Objects that are not watched, or are not in its namespaces, are read from the API server. It is safe for
// concurrent use.
type View struct {
	Options
	reader *Reader

	mu sync.Mutex
	// begin starts a watch, which runs until the context of Start ends. It is nil before Start, when nothing is watched.
	begin   func(*kindWatch, target.Collection)
	watches map[schema.GroupKind]*kindWatch
	// uses contains the kinds that each user needs, users the number of users of each kind.
	uses  map[types.NamespacedName][]unique.Handle[schema.GroupVersionKind]
	users map[schema.GroupKind]int
	// listener is called with objects that have changed.
	listener    atomic.Pointer[func(object.Key)]
	health      *healthListener
	checks      adoption
	rolloutWait *rolloutWait
}

// Options are the settings of a View.
type Options struct {
	// Objects accesses the target cluster.
	Objects *target.Objects
	// Policy determines the managers whose fields are taken over.
	Policy fieldowner.Policy
	// Examiner checks the health of objects.
	Examiner Examiner
	// ManagedBy is the value of the managed-by label.
	ManagedBy string
	// Namespaces are the watched namespaces. If it is empty, these are all.
	Namespaces []string
	Clock      clock.Clock
}

// NewView returns a view that does not watch anything until it is started.
func NewView(options Options) *View {
	return &View{
		Options: options,
		reader:  NewReader(options.Objects, options.Policy, options.Examiner),
		watches: map[schema.GroupKind]*kindWatch{},
		uses:    map[types.NamespacedName][]unique.Handle[schema.GroupVersionKind]{},
		users:   map[schema.GroupKind]int{},
		health:  &healthListener{suspended: map[string]bool{}},

		rolloutWait: newRolloutWait(),
	}
}

// Start watches the kinds in use until the context ends. The manager calls it when this process becomes the leader.
func (v *View) Start(ctx context.Context) error {
	v.mu.Lock()
	v.begin = func(w *kindWatch, collection target.Collection) {
		var watchCtx context.Context
		watchCtx, w.cancel = context.WithCancel(ctx)
		w.store.renew = func(names []types.NamespacedName) { go v.renew(watchCtx, renewal{w, names}) }
		if w.store.observer.examiner != nil && w.gk == deployments {
			w.store.follow = w.followPods(watchCtx, newOldPods(v.Objects.Whole, v.Clock))
		}
		w.run(watchCtx, collection, v.ManagedBy)
	}
	var needed []schema.GroupVersionKind
	for _, handles := range v.uses {
		for _, handle := range handles {
			needed = append(needed, handle.Value())
		}
	}
	v.mu.Unlock()
	_, _ = v.Objects.Mapping(corev1.SchemeGroupVersion.WithKind("Namespace")) // discovers all kinds before the first one is needed
	for _, gvk := range needed {
		v.ensure(gvk)
	}
	<-ctx.Done()
	return nil
}

// Listen sets the listener that is called, immediately and in undefined order, with objects that have changed in a way
// that may require a decision. The listener must not block.
func (v *View) Listen(listener func(object.Key)) { v.listener.Store(&listener) }

// Use replaces the kinds that a user needs. They must not contain duplicates. A watch ends when its kind no longer has
// a user.
func (v *View) Use(user types.NamespacedName, gvks []schema.GroupVersionKind) {
	for _, unused := range v.replaceUse(user, gvks) {
		unused.cancel()
	}
	for _, gvk := range gvks {
		v.ensure(gvk)
	}
}

// InUse reports whether the kinds that a user needs are watched, or will be shortly.
func (v *View) InUse(user types.NamespacedName) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.begin != nil && len(v.uses[user]) > 0
}

// replaceUse replaces the kinds of a user, and returns the watches that no longer have a user.
func (v *View) replaceUse(user types.NamespacedName, gvks []schema.GroupVersionKind) []*kindWatch {
	v.mu.Lock()
	defer v.mu.Unlock()
	handles := make([]unique.Handle[schema.GroupVersionKind], 0, len(gvks)) // a handle takes one word, and there is a list for each user
	for _, gvk := range gvks {
		v.users[gvk.GroupKind()]++
		handles = append(handles, unique.Make(gvk))
	}
	var unused []*kindWatch
	for _, handle := range v.uses[user] {
		gk := handle.Value().GroupKind()
		if v.users[gk]--; v.users[gk] > 0 {
			continue
		}
		delete(v.users, gk)
		if w, watched := v.watches[gk]; watched {
			unused = append(unused, w)
			delete(v.watches, gk)
		}
	}
	delete(v.uses, user)
	if len(gvks) > 0 {
		v.uses[user] = handles
	}
	return unused
}

// ensure starts the watch of a kind that is in use and not watched. It does nothing if the kind is currently not
// served. The next use tries again.
func (v *View) ensure(gvk schema.GroupVersionKind) {
	for v.lacks(gvk.GroupKind()) && !v.tryWatch(gvk) {
	}
}

// tryWatch starts the watch of a kind if it is served. It returns false if the requirements of the examiner have
// changed in the meantime.
func (v *View) tryWatch(gvk schema.GroupVersionKind) bool {
	examiner := examinerOf(v.Examiner, gvk.GroupKind())
	open := v.Objects.Metadata
	if needsBody(v.Examiner, gvk.GroupKind()) {
		open = v.Objects.Whole
	}
	collection, err := open(gvk)
	if err != nil {
		return true // reading the objects returns the error
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if (examiner == nil) != (examinerOf(v.Examiner, gvk.GroupKind()) == nil) {
		return false // AdoptChecks did not find this watch
	}
	if !v.lacksLocked(gvk.GroupKind()) {
		return true
	}
	w := &kindWatch{gk: gvk.GroupKind(), version: gvk.Version, clock: v.Clock, decided: make(chan struct{})}
	if collection.Namespaced && len(v.Namespaces) > 0 {
		w.namespaces = v.Namespaces
	}
	w.store = &store{
		observer:      observer{gk: w.gk, policy: v.Policy, examiner: examiner},
		clock:         v.Clock,
		objects:       held{},
		finished:      finishedJobs{},
		shown:         map[string]string{},
		perNamespace:  w.namespaces != nil,
		changed:       func(name types.NamespacedName) { v.notify(w.gk, name) },
		healthChanged: v.health.notify,
	}
	v.watches[w.gk] = w
	v.begin(w, collection)
	return true
}

// lacks reports whether a kind is in use and not watched.
func (v *View) lacks(gk schema.GroupKind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lacksLocked(gk)
}

func (v *View) lacksLocked(gk schema.GroupKind) bool {
	running, watched := v.watches[gk]
	return v.begin != nil && v.users[gk] > 0 && (!watched || running.ended())
}

// notify calls the listener with a changed object.
func (v *View) notify(gk schema.GroupKind, name types.NamespacedName) {
	if listener := v.listener.Load(); listener != nil {
		(*listener)(object.Key{Group: gk.Group, Kind: gk.Kind, Namespace: name.Namespace, Name: name.Name})
	}
}

// watchOf returns the watch of a kind. It is nil if there is none.
func (v *View) watchOf(gvk schema.GroupVersionKind) *kindWatch {
	v.ensure(gvk)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.watches[gvk.GroupKind()]
}

// Read returns the state of every object in refs according to the watches. "Absent" means that there is no such object
// with the managed-by label. There is no error for the whole read. The state of objects that could not be read is
// Unknown.
func (v *View) Read(ctx context.Context, refs []object.Ref) map[object.Key]State {
	return v.read(ctx, refs, false)
}

// Confirm returns the state of every object in refs, like Read, but "Absent" means that the object does not exist in
// the API server.
func (v *View) Confirm(ctx context.Context, refs []object.Ref) map[object.Key]State {
	return v.read(ctx, refs, true)
}

// Fetch returns the current state of every object in refs from the API server.
func (v *View) Fetch(ctx context.Context, refs []object.Ref) map[object.Key]State {
	return v.reader.Read(ctx, refs)
}

func (v *View) read(ctx context.Context, refs []object.Ref, confirm bool) map[object.Key]State {
	states := make(map[object.Key]State, len(refs))
	usable := v.usable(ctx, refs)
	var unseen []object.Ref
	for _, ref := range refs {
		w := usable[ref.GroupKind()]
		if w == nil || !w.covers(ref.Namespace) {
			unseen = append(unseen, ref)
			continue
		}
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		observation, found := w.store.get(key)
		switch {
		case found:
			states[ref.Key()] = State{Presence: Present, Observation: observation}
		case w.store.hasFinished(key):
			states[ref.Key()] = State{Presence: Absent, Finished: true}
		case confirm:
			unseen = append(unseen, ref)
		default:
			states[ref.Key()] = State{Presence: Absent}
		}
	}
	for key, state := range v.reader.Read(ctx, unseen) {
		states[key] = state
	}
	return states
}

// usable waits for the watches of the kinds of objects, and returns those that show the state of the cluster. All
// watches are started before it waits for the first one, so that a watch that does not start delays the others by no
// more than firstSync.
func (v *View) usable(ctx context.Context, refs []object.Ref) map[schema.GroupKind]*kindWatch {
	watches := map[schema.GroupKind]*kindWatch{}
	for _, ref := range refs {
		if _, started := watches[ref.GroupKind()]; !started {
			watches[ref.GroupKind()] = v.watchOf(ref.GroupVersionKind)
		}
	}
	maps.DeleteFunc(watches, func(_ schema.GroupKind, w *kindWatch) bool { return w == nil || !w.usable(ctx) })
	return watches
}

// Watches reports whether changes and the deletion of an object are noticed immediately.
func (v *View) Watches(ref object.Ref) bool {
	w := v.watchOf(ref.GroupVersionKind)
	return w != nil && w.state() == stateWatching && w.store.has(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}

// Shows reports whether the watch of a kind has shown all of its objects. It does not wait.
func (v *View) Shows(gk schema.GroupKind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.watches[gk]
	return w != nil && w.state() == stateWatching
}

// Watching reports whether all watches currently show the state of the cluster.
func (v *View) Watching() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.watches {
		if w.state() != stateWatching {
			return false
		}
	}
	return true
}

// RecordWrite stores the state of an object after a write of this process, before the watch shows it. The watch may
// then show the same health, so RecordWrite calls the health listeners.
func (v *View) RecordWrite(ref object.Ref, observation Observation) {
	w := v.watchOf(ref.GroupVersionKind)
	if w == nil || !w.covers(ref.Namespace) || observation.ManagedBy != v.ManagedBy {
		return
	}
	observation.Examined = observation.Examined || w.store.observer.examiner == nil
	key := types.NamespacedName{Namespace: interned(ref.Namespace), Name: ref.Name}
	difference := w.store.recordWrite(key, &observation)
	difference.decision = false // the pass that wrote it does not need the event
	w.store.notify(key, difference)
}

// RecordDeletion removes the object with a UID that this process deleted, before the watch shows the deletion.
func (v *View) RecordDeletion(ref object.Ref, uid types.UID) {
	if w := v.watchOf(ref.GroupVersionKind); w != nil {
		w.store.drop(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, uid)
	}
}

// Counts contains the number of watches in each state, and the number of objects of each kind.
type Counts struct {
	Watches map[string]int
	Objects map[schema.GroupKind]int
}

// Counts returns the current numbers of watches and objects.
func (v *View) Counts() Counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	counts := Counts{Watches: map[string]int{}, Objects: map[schema.GroupKind]int{}}
	for gk, w := range v.watches {
		counts.Watches[w.state()]++
		counts.Objects[gk] = w.store.size()
	}
	return counts
}
