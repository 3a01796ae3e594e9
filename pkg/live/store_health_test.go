package live

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/health"
)

var (
	thing = types.NamespacedName{Namespace: "ns", Name: "a"}
	twoOf = health.PodCount{Selector: "app=web", Replicas: 2}
)

// newFeelingStore returns a store, and a recorder of its notifications about the health of objects.
func newFeelingStore() (*store, *told) {
	notified := &told{}
	s, _ := newTestStore()
	s.healthChanged = func(origin string) { notified.add(types.NamespacedName{Name: origin}) }
	return s, notified
}

// see simulates that the watch shows an object.
func (s *store) see(observation Observation) {
	_ = s.Add(&reduced{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, observation: &observation}) // never fails
}

// saw returns an examined observation of a generation.
func saw(version string, generation int64, verdict *health.Verdict) Observation {
	return Observation{UID: "u", ResourceVersion: version, Origin: "shop", Generation: generation, Examined: true, Health: verdict}
}

// wantHealth checks the stored health of the object: "?" if it must be examined, followed by "!" if its Pods must be counted.
func wantHealth(t *testing.T, s *store, when, want string) {
	t.Helper()
	held := s.objects.get(thing)
	var got string
	switch {
	case held == nil:
		got = "gone"
	case !held.Examined:
		got = "?"
	default:
		got = held.verdict().Unhealthy + held.verdict().Progressing
	}
	if held.awaitsCount() {
		got += "!"
	}
	if got != want {
		t.Errorf("%s: the store has %q, want %q", when, got, want)
	}
}

func (v *told) want(t *testing.T, what string, origins ...string) {
	t.Helper()
	names := make([]string, 0, len(origins))
	for _, origin := range origins {
		names = append(names, "/"+origin)
	}
	wantTold(t, v, what, names...)
}

// TestNotedWriteKeepsTheVerdict checks that a write of the process itself keeps the verdict. The response is metadata without
// information about the health, which stays the same as long as the spec does, until the watch shows the object.
func TestNotedWriteKeepsTheVerdict(t *testing.T) {
	s, notified := newFeelingStore()
	note := func(version string, generation int64) {
		observation := saw(version, generation, nil)
		observation.Examined = false
		s.recordWrite(thing, &observation)
	}
	sick := &health.Verdict{Unhealthy: "sick"}

	note("1", 1)
	wantHealth(t, s, "a new object", "?")
	s.see(saw("1", 1, nil))
	wantHealth(t, s, "seen in the same version", "")
	notified.want(t, "seen", "shop")
	s.see(saw("2", 1, sick))
	wantHealth(t, s, "worse", "sick")
	notified.want(t, "worse", "shop")

	note("3", 1)
	wantHealth(t, s, "written, same generation", "sick")
	s.see(saw("3", 1, sick))
	notified.want(t, "as before")
	note("4", 1)
	s.see(saw("4", 1, nil))
	wantHealth(t, s, "the watch shows another result", "")
	notified.want(t, "better", "shop")
	s.see(saw("4", 1, sick))
	wantHealth(t, s, "the same version again", "")

	note("5", 2)
	wantHealth(t, s, "written, next generation", "?")
	note("6", 2)
	wantHealth(t, s, "written again", "?")
	s.see(saw("5", 2, sick))
	wantHealth(t, s, "an older version", "?")
	notified.want(t, "an older version")
	s.see(saw("6", 2, nil))
	wantHealth(t, s, "seen", "")
	notified.want(t, "seen", "shop")

	other := saw("7", 2, nil)
	other.UID, other.Examined = "another", false
	s.recordWrite(thing, &other)
	wantHealth(t, s, "another object of the same name", "?")
}

// TestWhoIsTold checks that only the origins whose health might have changed are notified.
func TestWhoIsTold(t *testing.T) {
	s, notified := newFeelingStore()
	s.see(saw("1", 1, nil))
	notified.want(t, "a new object", "shop")
	s.see(saw("2", 2, nil))
	notified.want(t, "a change without effect")
	exempt := saw("3", 2, nil)
	exempt.Exempt = true
	s.see(exempt)
	notified.want(t, "exempt from checks", "shop")
	s.see(saw("4", 2, nil))
	notified.want(t, "checked again", "shop")
	moved := saw("5", 2, nil)
	moved.Origin = "bank"
	s.see(moved)
	notified.want(t, "another origin", "bank", "shop")
	moved.ResourceVersion = "6"
	must(t, s.Delete(&reduced{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, observation: &moved}))
	notified.want(t, "a deletion", "bank")

	s.see(saw("7", 2, nil))
	notified.take()
	all := &part{store: s, synced: func() {}, failed: func(error) {}}
	sick := saw("8", 2, &health.Verdict{Unhealthy: "sick"})
	list := []any{&reduced{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, observation: &sick}}
	must(t, all.Replace(list, "9"))
	notified.want(t, "a list that shows it worse", "shop")
	must(t, all.Replace(list, "9"))
	notified.want(t, "the same list")
	must(t, all.Replace(nil, "10"))
	notified.want(t, "a list without it", "shop")
	s.drop(thing, "u")
	notified.want(t, "no object")
}

// TestCountedPods checks that a Deployment that is rolled out is examined after its Pods were counted, once for each generation.
func TestCountedPods(t *testing.T) {
	const remain = "there are still non-terminated old pods"
	s, notified := newFeelingStore()
	followed := 0
	s.follow = func(types.NamespacedName) { followed++ }
	done := func(version string, generation int64) Observation {
		return saw(version, generation, &health.Verdict{OldPods: twoOf})
	}
	s.see(done("1", 1))
	wantHealth(t, s, "rolled out", "?!")
	s.recordCount(thing, "another", twoOf, 2)
	s.recordCount(thing, "u", health.PodCount{Selector: "app=web", Replicas: 3}, 2)
	s.recordCount(types.NamespacedName{Name: "none"}, "u", twoOf, 2)
	wantHealth(t, s, "others were counted", "?!")
	notified.take()

	s.recordCount(thing, "u", twoOf, 3)
	wantHealth(t, s, "old Pods", remain+"!")
	notified.want(t, "old Pods", "shop")
	s.see(done("2", 1))
	wantHealth(t, s, "a change of status while they are counted", remain+"!")
	s.recordCount(thing, "u", twoOf, 4)
	notified.want(t, "another number of old Pods")
	s.recordCount(thing, "u", twoOf, 2)
	wantHealth(t, s, "as many as wanted", "")
	notified.want(t, "as many as wanted", "shop")
	s.recordCount(thing, "u", twoOf, 5)
	wantHealth(t, s, "a late count", "")

	s.see(done("3", 1))
	wantHealth(t, s, "the same generation", "")
	s.recordWrite(thing, &Observation{UID: "u", ResourceVersion: "4", Origin: "shop", Generation: 1})
	s.see(done("4", 1))
	wantHealth(t, s, "after a write of the same generation", "")
	sick := saw("5", 1, &health.Verdict{Unhealthy: "sick", OldPods: twoOf})
	s.see(sick)
	wantHealth(t, s, "sick, but counted", "sick")
	notified.take()
	s.see(done("6", 2))
	wantHealth(t, s, "the next generation", "?!")
	s.see(saw("7", 2, &health.Verdict{Unhealthy: "sick", OldPods: twoOf}))
	s.recordCount(thing, "u", twoOf, 2)
	wantHealth(t, s, "sick and counted", "sick")
	if followed == 0 {
		t.Fatal("follow is never called")
	}
	followed = 0
	s.drop(thing, "u")
	if wantHealth(t, s, "deleted by us", "gone"); followed != 1 {
		t.Error("follow is not called after the deletion")
	}
}

// TestStoreTellsOfDefinitions checks that an established CustomResourceDefinition triggers a new decision, because its objects
// wait for that. For other kinds, a change of health does not trigger one.
func TestStoreTellsOfDefinitions(t *testing.T) {
	for name, test := range map[string]struct {
		gk   schema.GroupKind
		want []string
	}{
		"a definition": {definitions, []string{"ns/a"}},
		"a Deployment": {deployments, nil},
	} {
		s, told := newTestStore()
		s.observer.gk = test.gk
		s.see(Observation{ResourceVersion: "1", Examined: true, Health: &health.Verdict{Unhealthy: "not established"}})
		told.take()
		s.see(Observation{ResourceVersion: "2", Examined: true})
		wantTold(t, told, name, test.want...)
	}
}
