package managedresource

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
)

// owners returns fixed answers about the ownership, from the view of shop.
type owners struct {
	// standing are the ManagedResources that exist and want or hold the object.
	standing []types.NamespacedName
	// claiming are the ManagedResources that claim the object, in the order of their claims.
	claiming []types.NamespacedName
}

func (o owners) ownership() ownership.Owners {
	return ownership.Owners{
		Self: resourcesv1alpha1.Origin{Owner: shop},
		StillOwns: func(owner resourcesv1alpha1.Origin, _ object.Key) bool {
			for _, standing := range o.standing {
				if owner.Owner == standing {
					return true
				}
			}
			return false
		},
		FirstClaim: func(object.Key) (types.NamespacedName, bool) {
			if len(o.claiming) == 0 {
				return types.NamespacedName{}, false
			}
			return o.claiming[0], true
		},
		Successors: func(object.Key, types.NamespacedName) []types.NamespacedName {
			return slices.DeleteFunc(slices.Clone(o.claiming), func(claiming types.NamespacedName) bool { return claiming == shop })
		},
	}
}

func present(observation live.Observation) live.State {
	return live.State{Presence: live.Present, Observation: observation}
}

var errNotServed = errors.New("not served")

func TestPlanApply(t *testing.T) {
	const digest = "sent.owned"
	ours := live.Observation{UID: "u", ResourceVersion: "7", Origin: "garden/shop", ManagedBy: "gardener", OwnedDigest: "owned"}
	with := func(change func(*live.Observation)) live.State {
		observation := ours
		change(&observation)
		return present(observation)
	}
	ofBank := with(func(o *live.Observation) { o.Origin = "garden/bank" })
	both := owners{standing: []types.NamespacedName{shop, bank}}

	for name, test := range map[string]struct {
		state     live.State
		recorded  string
		owners    owners
		heldBack  bool
		always    bool
		requested bool
		// unrecorded is true if the status was not stored after the object was written.
		unrecorded bool
		// fromZero is the number of replicas that an object with 0 replicas gets.
		fromZero any
		drift    bool
		want     action
		says     string
	}{
		"nothing changed":               {state: present(ours), recorded: digest, want: actionSkip, says: "nothing changed"},
		"always":                        {state: present(ours), recorded: digest, always: true, want: actionApply, says: "alwaysUpdate"},
		"the manifest changed":          {state: present(ours), recorded: "old.owned", want: actionApply, says: "changed"},
		"the object changed":            {state: present(ours), recorded: "sent.old", want: actionApply, says: "changed", drift: true},
		"written, not recorded":         {state: present(ours), recorded: digest, unrecorded: true, want: actionApply, says: "status was not stored"},
		"deleted, not recorded":         {state: live.State{Presence: live.Absent}, recorded: digest, unrecorded: true, want: actionCreate},
		"not applied before":            {state: present(ours), recorded: "", want: actionApply, says: "not applied before"},
		"nothing is owned":              {state: with(func(o *live.Observation) { o.OwnedDigest = "" }), recorded: digest, want: actionApply, says: "not applied before"},
		"nothing is owned or recorded":  {state: with(func(o *live.Observation) { o.OwnedDigest = "" }), want: actionApply},
		"a foreign object":              {state: present(live.Observation{UID: "u"}), want: actionApply, says: "not applied before"},
		"being deleted":                 {state: with(func(o *live.Observation) { o.Deleting = time.Unix(1, 0) }), recorded: digest, want: actionWait, says: "being deleted"},
		"requested":                     {state: present(ours), recorded: digest, requested: true, want: actionApply, says: "sends everything"},
		"being deleted, always":         {state: with(func(o *live.Observation) { o.Deleting = time.Unix(1, 0) }), always: true, want: actionWait, says: "being deleted"},
		"another's":                     {state: ofBank, owners: both, want: actionConflict, says: "garden/bank"},
		"another's, always":             {state: ofBank, owners: both, always: true, want: actionConflict, says: "garden/bank"},
		"another's, being deleted":      {state: with(func(o *live.Observation) { o.Origin, o.Deleting = "garden/bank", time.Unix(1, 0) }), owners: both, want: actionConflict},
		"another's that is gone":        {state: ofBank, recorded: digest, want: actionApply, says: "another ManagedResource applied it"},
		"another cluster's, same name":  {state: with(func(o *live.Observation) { o.Origin = "seed:garden/shop" }), recorded: digest, owners: both, want: actionSkip},
		"another cluster's, other name": {state: with(func(o *live.Observation) { o.Origin = "seed:garden/bank" }), owners: both, want: actionConflict, says: "seed:garden/bank"},
		"an origin that is none":        {state: with(func(o *live.Observation) { o.Origin = "hello" }), recorded: digest, owners: both, want: actionSkip},
		"ours, claimed by another":      {state: present(ours), recorded: digest, owners: owners{claiming: []types.NamespacedName{bank, shop}}, want: actionSkip},
		"absent":                        {state: live.State{Presence: live.Absent}, recorded: digest, want: actionCreate, says: "does not exist", drift: true},
		"absent, claimed by us":         {state: live.State{Presence: live.Absent}, owners: owners{claiming: []types.NamespacedName{shop}}, want: actionCreate},
		"absent, claimed by us first":   {state: live.State{Presence: live.Absent}, owners: owners{claiming: []types.NamespacedName{shop, bank}}, want: actionCreate},
		"absent, another was first":     {state: live.State{Presence: live.Absent}, owners: owners{claiming: []types.NamespacedName{bank, shop}}, want: actionConflict, says: "garden/bank"},
		"kind not served":               {state: live.State{Presence: live.KindNotServed, Err: errNotServed}, want: actionFail, says: "install its CustomResourceDefinition"},
		"its definition failed":         {state: live.State{Presence: live.KindNotServed, Err: errNotServed}, heldBack: true, want: actionWait, says: "not ready: broken schema"},
		"there, its definition failed":  {state: present(ours), recorded: digest, heldBack: true, want: actionSkip},
		"0 replicas by others":          {state: with(func(o *live.Observation) { o.Replicas = live.ReplicasZeroOfOthers }), recorded: digest, fromZero: 2, want: actionApply, says: "0 replicas", drift: true},
		"0 replicas by us":              {state: with(func(o *live.Observation) { o.Replicas = live.ReplicasZeroOfOurs }), recorded: digest, fromZero: 2, want: actionApply, says: "0 replicas", drift: true},
		"replicas":                      {state: present(ours), recorded: digest, fromZero: 2, want: actionSkip},
		"0 replicas that are kept":      {state: with(func(o *live.Observation) { o.Replicas = live.ReplicasZeroOfOthers }), recorded: digest, want: actionSkip},
		"0 replicas, other manifest":    {state: with(func(o *live.Observation) { o.Replicas = live.ReplicasZeroOfOthers }), recorded: "old.owned", fromZero: 2, want: actionApply, says: "changed"},
		"not readable":                  {state: live.State{Presence: live.Unknown, Err: errNotServed}, want: actionFail, says: "cannot be read"},
		"not read":                      {want: actionFail, says: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(widgetKind, "a", "x")
			manifest.ReplicasFromZero = test.fromZero
			in := applyInput{
				manifests: []object.Manifest{manifest},
				recorded:  inventoryWith(entry(widgetKind, "a", "x", test.recorded)),
				live:      map[object.Key]live.State{manifest.Key(): test.state},
				ownership: test.owners.ownership(),
				always:    test.always,

				unrecorded: func(object.Key) bool { return test.unrecorded },
				requested:  test.requested,
			}
			if test.heldBack {
				in.heldBack = map[schema.GroupKind]heldBack{widgetKind.GroupKind(): {err: errors.New("broken schema")}}
			}
			changes := planApply(in)
			if len(changes) != 1 {
				t.Fatalf("got %d changes, want 1", len(changes))
			}
			got := changes[0]
			checkDecision(t, got, test.want, test.says)
			if got.drift != test.drift {
				t.Errorf("the change undoes drift: %t, want %t", got.drift, test.drift)
			}
			if got.Ref != manifest.Ref || got.manifest != &in.manifests[0] || !reflect.DeepEqual(got.observation, test.state.Observation) {
				t.Errorf("the change has the wrong object: %+v", got)
			}
		})
	}
}

// checkDecision checks the action, and that the reason or error contains the expected text.
func checkDecision(t *testing.T, got change, want action, says string) {
	t.Helper()
	if got.action != want {
		t.Errorf("got %s (%s, %v), want %s", got.action, got.reason, got.err, want)
	}
	if failed := want == actionFail || want == actionConflict; failed != (got.err != nil) {
		t.Errorf("error %v, want one: %v", got.err, failed)
	}
	text := got.reason
	if got.err != nil {
		text = got.err.Error()
	}
	if text == "" {
		t.Error("the decision has no reason")
	}
	expectContains(t, text, says)
}

func TestPlanApplyKeepsTheOrderAndTheCause(t *testing.T) {
	in := applyInput{
		manifests: []object.Manifest{manifestOf(configMapKind, "a", "z"), manifestOf(configMapKind, "a", "b")},
		live: map[object.Key]live.State{
			manifestOf(configMapKind, "a", "z").Key(): {Presence: live.Unknown, Err: errNotServed},
			manifestOf(configMapKind, "a", "b").Key(): {Presence: live.Absent},
		},
		ownership: owners{}.ownership(),
	}
	changes := planApply(in)
	if len(changes) != 2 || changes[0].Name != "z" || changes[1].Name != "b" {
		t.Fatalf("got %+v, want one change per manifest in their order", changes)
	}
	if !errors.Is(changes[0].err, errNotRead) || !errors.Is(changes[0].err, errNotServed) {
		t.Errorf("the error %v does not wrap its cause", changes[0].err)
	}
	if changes[1].action != actionCreate {
		t.Errorf("one failure prevented the decision about another object: %s", changes[1].action)
	}
	if changes := planApply(applyInput{}); len(changes) != 0 {
		t.Errorf("a plan for no objects has %d changes", len(changes))
	}
}

func TestPlanPrune(t *testing.T) {
	ours := live.Observation{UID: "u", ResourceVersion: "7", Origin: "garden/shop", ManagedBy: "gardener", OwnedDigest: "owned"}
	with := func(change func(*live.Observation)) live.State {
		observation := ours
		change(&observation)
		return present(observation)
	}
	both := owners{standing: []types.NamespacedName{shop, bank}}
	claimed := owners{claiming: []types.NamespacedName{shop, bank}}
	notServed := live.State{Presence: live.KindNotServed, Err: errNotServed}

	for name, test := range map[string]struct {
		state     live.State
		owners    owners
		abolished bool
		ignored   string
		want      action
		says      string
	}{
		"ours":                               {state: present(ours), want: actionDelete, says: "no longer wanted"},
		"ours, claimed by us":                {state: present(ours), owners: owners{claiming: []types.NamespacedName{shop}}, want: actionDelete},
		"ours, wanted by another":            {state: present(ours), owners: claimed, want: actionHandOver, says: "garden/bank wants it"},
		"another's":                          {state: with(func(o *live.Observation) { o.Origin = "garden/bank" }), owners: both, want: actionRelease, says: "belongs to ManagedResource garden/bank"},
		"another cluster's, same name":       {state: with(func(o *live.Observation) { o.Origin = "seed:garden/shop" }), owners: both, want: actionDelete},
		"another cluster's, other name":      {state: with(func(o *live.Observation) { o.Origin = "seed:garden/bank" }), owners: both, want: actionRelease, says: "seed:garden/bank"},
		"to be kept":                         {state: with(func(o *live.Observation) { o.Directive.KeepOnPrune = true }), want: actionRelease, says: "annotations request"},
		"to be kept, being deleted":          {state: with(func(o *live.Observation) { o.Directive.KeepOnPrune, o.Deleting = true, time.Unix(1, 0) }), want: actionRelease, says: "annotations request"},
		"being deleted":                      {state: with(func(o *live.Observation) { o.Deleting = time.Unix(1, 0) }), want: actionWait, says: "being deleted"},
		"no origin, fields of ours":          {state: present(live.Observation{OwnedDigest: "owned"}), want: actionDelete},
		"no origin, label of ours":           {state: present(live.Observation{ManagedBy: "gardener"}), want: actionDelete},
		"no origin, another's label":         {state: present(live.Observation{ManagedBy: "someone"}), want: actionRelease, says: "another client created it again"},
		"no mark at all":                     {state: present(live.Observation{}), want: actionRelease, says: "another client created it again"},
		"no mark, being deleted":             {state: present(live.Observation{Deleting: time.Unix(1, 0)}), want: actionRelease},
		"no mark, because it is ignored":     {state: present(live.Observation{}), ignored: "true", want: actionDelete},
		"no mark, ignored spelt otherwise":   {state: present(live.Observation{}), ignored: "T", want: actionDelete},
		"no mark, not ignored":               {state: present(live.Observation{}), ignored: "false", want: actionRelease},
		"no mark, ignored misspelt":          {state: present(live.Observation{}), ignored: "yes", want: actionRelease},
		"an origin that is none, label":      {state: present(live.Observation{Origin: "hello", ManagedBy: "gardener"}), want: actionDelete},
		"absent":                             {state: live.State{Presence: live.Absent}, want: actionForget, says: "gone"},
		"absent, wanted by another":          {state: live.State{Presence: live.Absent}, owners: claimed, want: actionForget},
		"kind not served":                    {state: notServed, want: actionWait, says: "not served at the moment"},
		"kind abolished":                     {state: notServed, abolished: true, want: actionForget, says: "no longer served"},
		"there, kind said to be abolished":   {state: present(ours), abolished: true, want: actionDelete},
		"not readable, said to be abolished": {state: live.State{Presence: live.Unknown, Err: errNotServed}, abolished: true, want: actionFail, says: "cannot be read"},
		"not readable":                       {state: live.State{Presence: live.Unknown, Err: errNotServed}, want: actionFail, says: "not served"},
		"not read":                           {want: actionFail, says: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := entry(widgetKind, "a", "x", "sent.owned")
			if test.ignored != "" {
				recorded.Annotations = map[string]string{"resources.gardener.cloud/ignore": test.ignored}
			}
			entries := inventoryWith(recorded)
			key := refOfEntry(recorded).Key()
			changes := planPrune(pruneInput{
				entries:   entries,
				live:      map[object.Key]live.State{key: test.state},
				ownership: test.owners.ownership(),
				managedBy: "gardener",
				abolished: map[schema.GroupKind]bool{key.GroupKind(): test.abolished},
			})
			if len(changes) != 1 {
				t.Fatalf("got %d changes, want 1", len(changes))
			}
			got := changes[0]
			checkDecision(t, got, test.want, test.says)
			if got.Ref != refOfEntry(recorded) || got.manifest != nil || !reflect.DeepEqual(got.observation, test.state.Observation) {
				t.Errorf("the change has the wrong object: %+v", got)
			}
		})
	}
}

// TestObjectsSurviveTheirMove checks that an object is not deleted when it moves from one ManagedResource to another, whichever
// of the two applies first.
func TestObjectsSurviveTheirMove(t *testing.T) {
	key := manifestOf(configMapKind, "a", "x").Key()
	prune := func(observation live.Observation, owners owners) action {
		return planPrune(pruneInput{
			entries:   inventoryWith(entry(configMapKind, "a", "x", "sent.owned")),
			live:      map[object.Key]live.State{key: present(observation)},
			ownership: owners.ownership(),
			managedBy: "gardener",
		})[0].action
	}
	ofShop := live.Observation{Origin: "garden/shop", ManagedBy: "gardener", OwnedDigest: "owned"}
	ofBank := live.Observation{Origin: "garden/bank", ManagedBy: "gardener", OwnedDigest: "owned"}
	for name, observation := range map[string]live.Observation{"has not applied it": ofShop, "has applied it": ofBank} {
		owners := owners{standing: []types.NamespacedName{bank}, claiming: []types.NamespacedName{shop, bank}}
		if got := prune(observation, owners); got != actionHandOver {
			t.Errorf("the new owner wants it and %s: %s, want HandOver", name, got)
		}
	}
	if got := prune(ofBank, owners{standing: []types.NamespacedName{bank}, claiming: []types.NamespacedName{shop}}); got != actionRelease {
		t.Errorf("another ManagedResource has applied it: %s, want Release", got)
	}
	if got := prune(ofShop, owners{claiming: []types.NamespacedName{shop}}); got != actionDelete {
		t.Errorf("no other ManagedResource wants it: %s, want Delete", got)
	}
}
