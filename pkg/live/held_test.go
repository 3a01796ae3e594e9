package live

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// TestHeldObservationsAreWhole checks that every field of an observation is returned as it was stored. It sets each field
// separately, so that fields that are added later are covered.
func TestHeldObservationsAreWhole(t *testing.T) {
	all := Observation{
		UID: "c5a38f1e-7d4b-4b0e-9a54-0123456789ab", ResourceVersion: "12", Origin: "shop", ManagedBy: "gardener", Labels: "a", Annotations: "b\nc",
		OwnedDigest: "digest", Owned: fieldowner.FieldFilter{1, 2, 3, 4}, Unlabelled: true, TakeOverCandidates: fieldpath.NewSet(), FormerApplier: "former",
		Seen: 17, Writer: "kubectl", Deleting: time.Unix(5, 0), Finalizers: true, FinalizeAfter: "1h", Generation: 4, Examined: true,
		Health: &health.Verdict{Unhealthy: "yes"}, borrowed: true, counted: &health.PodCount{Selector: "x"}, Exempt: true, GarbageCollectable: true,
		Replicas: ReplicasZeroOfOthers, Finished: true,
	}
	all.Directive.Wave, all.Directive.Suspend = -3, true
	held, key := held{}, types.NamespacedName{Namespace: "a", Name: "b"}
	check := func(what string, observation Observation) {
		t.Helper()
		held.put(key, &observation)
		if got := held.get(key); *got != observation {
			t.Errorf("%s: got %+v, want %+v", what, *got, observation)
		}
	}
	check("nothing", Observation{})
	check("all", all)
	for i := range reflect.TypeFor[Observation]().NumField() {
		field := reflect.TypeFor[Observation]().Field(i)
		if reflect.ValueOf(all).Field(i).IsZero() {
			t.Errorf("the test has no value for %s", field.Name)
		}
		if field.IsExported() {
			one := Observation{}
			reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
			check(field.Name, one)
		}
	}
	for _, uid := range []types.UID{
		"created at 4", "C5A38F1E-7D4B-4B0E-9A54-0123456789AB", "c5a38f1e-7d4b-4b0e-9a54-0123456789aB", "c5a38f1e-7d4b-4b0e-9a54-0123456789ag",
		"00000000-0000-0000-0000-000000000000", "c5a38f1e7-d4b-4b0e-9a54-0123456789ab", "c5a38f1e-7d4b-4b0e-9a54+0123456789ab", "c5a38f1e",
		"c5a38f1e-7d4b-4b0e-9a5--0123456789ab",
	} {
		check(string(uid), Observation{UID: uid})
	}
}

// TestHeldObservationsAreSmall checks that an object without rare fields takes a third of an Observation, not counting its name
// and version.
func TestHeldObservationsAreSmall(t *testing.T) {
	const objects, wanted = 20_000, 220
	keys := make([]types.NamespacedName, objects)
	for i := range keys {
		keys[i].Name = fmt.Sprint("object", i)
	}
	inUse := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, held := inUse(), held{}
	for i, key := range keys {
		held.put(key, &Observation{
			UID: types.UID(fmt.Sprintf("c5a38f1e-7d4b-4b0e-9a54-%012d", i)), ResourceVersion: key.Name, Origin: fmt.Sprint("shop", i/10),
			Owned: fieldowner.FieldFilter{1, 2, 3, uint64(i % 10)}, OwnedDigest: key.Name, Writer: "kubectl", Seen: int64(i), Examined: true,
		})
	}
	if each := (inUse() - before) / objects; each > wanted {
		t.Errorf("an object takes %d bytes, more than %d", each, wanted)
	}
	runtime.KeepAlive(keys)
	runtime.KeepAlive(held)
}
