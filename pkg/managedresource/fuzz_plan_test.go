package managedresource

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
	"github.com/trellis-k8s/trellis/test/random"
)

// FuzzPlan reconciles a ManagedResource repeatedly in a random world, in which requests fail at first, and checks the
// invariants of each pass: no wanted object is deleted, no foreign object is changed, no existing object leaves the inventory,
// and in the end there is nothing left to do.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	for i := range byte(40) {
		f.Add([]byte{i, i * 3, i * 5, i * 7, i * 11, i * 13, i * 17, i * 19, i * 23, i * 29, i * 31, i * 37})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newPlanWorld(t, random.From(data))
		for range 3 {
			w.pass(true)
		}
		for range 4 {
			w.pass(false)
		}
		if w.always {
			return
		}
		for _, change := range w.pass(false) {
			switch change.action {
			case actionSkip, actionConflict, actionFail:
			case actionWait:
				if !w.kept[change.Key()] && w.states[change.Key()].Presence == live.Present {
					t.Errorf("%s waits forever: %s", change.Ref, change.reason)
				}
			default:
				t.Errorf("%s: %s in the end: %s", change.Ref, change.action, change.reason)
			}
		}
	})
}

// planWorld is a target cluster and one ManagedResource, shop.
type planWorld struct {
	*testing.T
	*rand.Rand
	now time.Time
	// states are the objects in the cluster.
	states   map[object.Key]live.State
	wanted   []object.Manifest
	released []object.Ref
	recorded inventory
	// claims are the objects that another ManagedResource than shop claims. first are those for which that claim is older. standing
	// are the existing ManagedResources.
	claims   map[object.Key]bool
	first    map[object.Key]bool
	standing map[resourcesv1alpha1.Origin]bool

	deleting, unreadable, always, forceLabels, collects bool
	heldBack                                            map[schema.GroupKind]heldBack
	abolished                                           map[schema.GroupKind]bool
	// ours are objects that shop applied, and that were neither deleted nor released since.
	ours map[object.Key]bool
	// kept are objects whose deletion never completes.
	kept map[object.Key]bool
}

var extensionsKind = schema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "Deployment"}

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func newPlanWorld(t *testing.T, r *rand.Rand) *planWorld {
	t.Helper()
	w := &planWorld{
		T: t, Rand: r, now: time.Unix(1000, 0), states: map[object.Key]live.State{}, recorded: inventory{},
		claims: map[object.Key]bool{}, first: map[object.Key]bool{}, standing: map[resourcesv1alpha1.Origin]bool{},
		heldBack: map[schema.GroupKind]heldBack{}, abolished: map[schema.GroupKind]bool{}, ours: map[object.Key]bool{}, kept: map[object.Key]bool{},
	}
	w.deleting, w.unreadable, w.always = w.sometimes(), w.sometimes(), w.sometimes()
	w.forceLabels, w.collects = w.sometimes(), w.sometimes()
	for _, text := range []string{"garden/bank", "seed:garden/bank", "garden/gone"} {
		origin, _ := resourcesv1alpha1.ParseOrigin(text)
		w.standing[origin] = r.IntN(2) == 0
	}
	if w.sometimes() {
		w.heldBack[widgetKind.GroupKind()] = heldBack{errors.New("its definition is broken"), time.Second}
	}
	w.abolished[widgetKind.GroupKind()] = w.sometimes()
	for _, manifest := range []object.Manifest{
		manifestOf(configMapKind, "a", "x"), manifestOf(configMapKind, "a", "y"), manifestOf(secretKind, "a", "x"), manifestOf(widgetKind, "a", "x"),
		manifestOf(deploymentKind, "a", "x"), manifestOf(extensionsKind, "a", "x"),
	} {
		w.add(manifest)
	}
	return w
}

// sometimes is true with a probability of one quarter.
func (w *planWorld) sometimes() bool { return w.IntN(4) == 0 }

// add adds an object to the manifests, and randomly to the cluster and the inventory.
func (w *planWorld) add(manifest object.Manifest) {
	key := manifest.Key()
	manifest.Annotations = oneOf(w.Rand, nil, nil, map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"},
		map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}, map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"})
	manifest.Directive = applyoptions.Of(manifest.Annotations)
	switch w.IntN(5) {
	case 0, 1, 2:
		w.wanted = append(w.wanted, manifest)
	case 3:
		w.released = append(w.released, manifest.Ref)
	}
	if w.IntN(3) > 0 {
		w.recorded[key] = entryOf(manifest, oneOf(w.Rand, "", "sent.owned", "old.owned", "sent.other"))
	}
	w.claims[key], w.first[key] = w.sometimes(), w.sometimes()
	w.states[key] = oneOf(w.Rand, live.State{Presence: live.Absent}, live.State{Presence: live.KindNotServed, Err: errNotServed},
		live.State{Presence: live.Unknown, Err: errTimeout}, present(w.observation()), present(w.observation()), present(w.observation()))
	w.ours[key] = w.isOurs(key)
}

func (w *planWorld) observation() live.Observation {
	observation := live.Observation{
		UID: "u", ResourceVersion: "7", Origin: oneOf(w.Rand, "garden/shop", "garden/shop", "", "garden/bank", "seed:garden/shop", "seed:garden/bank", "garden/gone", "hello"),
		ManagedBy: oneOf(w.Rand, "gardener", "gardener", "", "someone"), OwnedDigest: oneOf(w.Rand, "owned", "owned", "other", ""),
		Labels: oneOf(w.Rand, live.Keys(""), live.Keys("theirs")), GarbageCollectable: w.sometimes(),
	}
	observation.Directive.KeepOnPrune, observation.Directive.Suspend = w.sometimes(), w.sometimes()
	if w.sometimes() {
		observation.Deleting = w.now
	}
	return observation
}

// isOurs reports whether shop has applied an existing object, and no other ManagedResource has it.
func (w *planWorld) isOurs(key object.Key) bool {
	_, recorded := w.recorded[key]
	state := w.states[key]
	return recorded && state.Presence == live.Present && state.Observation.Origin == "garden/shop"
}

// foreign reports whether an object belongs to another ManagedResource that exists.
func (w *planWorld) foreign(key object.Key) bool {
	state := w.states[key]
	origin, ok := resourcesv1alpha1.ParseOrigin(state.Observation.Origin)
	return state.Presence == live.Present && ok && origin.Owner != shop && w.standing[origin]
}

func (w *planWorld) ownership() ownership.Owners {
	return ownership.Owners{
		Self:       resourcesv1alpha1.Origin{Owner: shop},
		StillOwns:  func(owner resourcesv1alpha1.Origin, _ object.Key) bool { return w.standing[owner] },
		FirstClaim: func(key object.Key) (types.NamespacedName, bool) { return bank, w.first[key] },
		Successors: func(key object.Key, _ types.NamespacedName) []types.NamespacedName {
			if w.claims[key] {
				return []types.NamespacedName{bank}
			}
			return nil
		},
	}
}

// pass reconciles once, like pass does with real clusters. Requests may fail.
func (w *planWorld) pass(failing bool) []change {
	p := &pass{mr: &resourcesv1alpha1.ManagedResource{}}
	in := input{recorded: w.recorded, manifests: w.wanted, released: w.released}
	if w.unreadable {
		in.problems = []problem{badManifest("x")}
	}
	if w.deleting {
		in.manifests, in.released = nil, nil
	}
	in.recorded, _ = in.recorded.union(in.manifests)
	applying := applyInput{
		manifests: in.manifests, recorded: in.recorded, live: w.states, ownership: w.ownership(), heldBack: w.heldBack, forceLabels: w.forceLabels,
		always: w.always, now: w.now,
	}
	unwanted := p.unwanted(in)
	if w.deleting {
		unwanted = in.recorded
	}
	pruning := pruneInput{
		entries: unwanted, live: w.states, ownership: w.ownership(), deleting: w.deleting, managedBy: "gardener", collectsGarbage: w.collects,
		now: w.now, abolished: w.abolished,
	}
	before := maps.Clone(in.recorded)
	var done changeSet
	for _, change := range planApply(applying) {
		w.checkApply(change)
		done.changes = append(done.changes, change)
	}
	for _, change := range planPrune(pruning) {
		w.checkPrune(in, change)
		done.changes = append(done.changes, change)
	}
	w.checkSame(applying, pruning, done.changes)
	if !reflect.DeepEqual(before, in.recorded) {
		w.Error("planning changed the inventory")
	}
	slices.SortFunc(done.changes, func(a, b change) int { return a.Key().Compare(b.Key()) }) // so that the random choices are reproducible
	for i := range done.changes {
		w.execute(&done.changes[i], failing)
	}
	w.checkInventory(in, done)
	w.recorded = done.remaining(in.recorded)
	w.time()
	return done.changes
}

// checkApply checks a decision about a wanted object.
func (w *planWorld) checkApply(change change) {
	key, state := change.Key(), w.states[change.Key()]
	says := fmt.Sprintf("%s, which is %+v: %s (%s, %v)", change.Ref, state, change.action, change.reason, change.err)
	switch change.action {
	case actionDelete, actionForget, actionRelease:
		w.Errorf("the object is wanted: %s", says)
	case actionCreate:
		if state.Presence != live.Absent || w.first[key] {
			w.Errorf("the object exists, or another ManagedResource has it: %s", says)
		}
	case actionApply:
		if state.Presence != live.Present || w.foreign(key) || !state.Observation.Deleting.IsZero() || state.Observation.Directive.Suspend {
			w.Errorf("the object must not be changed: %s", says)
		}
	}
	if change.finalize || change.manifest == nil || change.reason == "" && change.err == nil {
		w.Errorf("invalid change: %s", says)
	}
}

// checkPrune checks a decision about an object that is no longer wanted.
func (w *planWorld) checkPrune(in input, change change) {
	key, state := change.Key(), w.states[change.Key()]
	says := fmt.Sprintf("%s, which is %+v: %s (%s, %v)", change.Ref, state, change.action, change.reason, change.err)
	equivalences := manifest.NewEquivalences(nil)
	isWanted := slices.ContainsFunc(slices.Concat(refsOf(in.manifests), in.released), func(ref object.Ref) bool {
		return equivalences.Identity(ref.Key()) == equivalences.Identity(key)
	})
	if isWanted || len(in.problems) > 0 && !w.deleting {
		w.Errorf("the object is wanted, or might be: %s", says)
	}
	switch change.action {
	case actionCreate, actionApply, actionSkip, actionConflict:
		w.Errorf("the object is not wanted: %s", says)
	case actionDelete:
		if w.foreign(key) || w.claims[key] || state.Presence != live.Present || w.unknown(key) || !state.Observation.Deleting.IsZero() ||
			!w.deleting && state.Observation.Directive.KeepOnPrune {
			w.Errorf("the object must not be deleted: %s", says)
		}
	case actionForget:
		if state.Presence != live.Absent && (state.Presence != live.KindNotServed || !w.abolished[key.GroupKind()]) {
			w.Errorf("the object might exist: %s", says)
		}
	case actionRelease, actionHandOver:
		if state.Presence != live.Present {
			w.Errorf("the state of the object is not known: %s", says)
		}
	}
	if change.finalize && state.Observation.Deleting.IsZero() {
		w.Errorf("the deletion was not requested: %s", says)
	}
}

// unknown reports whether a live object has no mark that shop applied it.
func (w *planWorld) unknown(key object.Key) bool {
	observation := w.states[key].Observation
	marked := observation.ManagedBy == "gardener"
	if origin, ok := resourcesv1alpha1.ParseOrigin(observation.Origin); ok {
		return origin.Owner != shop && (observation.OwnedDigest == "" || !marked)
	}
	bare := applyoptions.Of(w.recorded[key].Annotations).CreateOnly
	return observation.OwnedDigest == "" && !marked && !bare
}

// checkSame checks that the same input leads to the same decision.
func (w *planWorld) checkSame(applying applyInput, pruning pruneInput, changes []change) {
	decided := func(changes []change) map[object.Key]string {
		actions := map[object.Key]string{}
		for _, change := range changes {
			if _, twice := actions[change.Key()]; twice {
				w.Errorf("there are two decisions about %s", change.Ref)
			}
			actions[change.Key()] = string(change.action) + change.reason
		}
		return actions
	}
	if again := slices.Concat(planApply(applying), planPrune(pruning)); !reflect.DeepEqual(decided(again), decided(changes)) {
		w.Errorf("the decisions differ: %v, then %v", decided(changes), decided(again))
	}
}

// execute applies a change to the simulated cluster.
func (w *planWorld) execute(change *change, failing bool) {
	key, observation := change.Key(), &change.observation
	if change.err != nil || failing && w.sometimes() && change.action != actionSkip {
		if change.err == nil {
			change.err = errTimeout
		}
		return
	}
	switch change.action {
	case actionCreate, actionApply:
		*observation = live.Observation{UID: "u", ResourceVersion: "8", OwnedDigest: "owned", Directive: change.manifest.Directive}
		if !change.manifest.Directive.Bare {
			observation.Origin, observation.ManagedBy = "garden/shop", "gardener"
		}
		w.states[key], w.ours[key] = present(*observation), true
	case actionDelete:
		if w.sometimes() { // the deletion is blocked
			state := w.states[key]
			state.Observation.Deleting = w.now
			w.states[key], w.kept[key] = state, w.sometimes()
			change.action, change.reason = actionWait, "it is being deleted"
			return
		}
		w.states[key], w.ours[key] = live.State{Presence: live.Absent}, false
	case actionHandOver:
		if !failing || w.sometimes() { // the new owner has recorded it
			change.action, w.ours[key] = actionRelease, false
		}
	case actionForget, actionRelease:
		w.ours[key] = false
	}
}

// checkInventory checks that the inventory still has all existing objects that shop applied.
func (w *planWorld) checkInventory(in input, done changeSet) {
	remaining := done.remaining(in.recorded)
	for key, ours := range w.ours {
		if _, recorded := remaining[key]; ours && !recorded && w.states[key].Presence == live.Present {
			w.Errorf("%s still exists, but is missing in the inventory", key)
		}
	}
	for key := range remaining {
		if _, before := in.recorded[key]; !before {
			w.Errorf("%s was applied before it was recorded", key)
		}
	}
}

// time completes pending deletions, and makes unreadable objects readable.
func (w *planWorld) time() {
	for key, state := range w.states {
		switch {
		case state.Presence == live.Present && !state.Observation.Deleting.IsZero() && !w.kept[key]:
			w.states[key], w.ours[key] = live.State{Presence: live.Absent}, false
		case state.Presence == live.Unknown:
			w.states[key] = live.State{Presence: live.Absent}
		}
	}
}
