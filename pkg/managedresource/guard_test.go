package managedresource

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestGuardPrune(t *testing.T) {
	const checksum = "0123456789abcdef"
	percent := func(most int32) *resourcesv1alpha1.PruneGuard {
		return &resourcesv1alpha1.PruneGuard{MaxPercent: ptr.To(most)}
	}
	for name, test := range map[string]struct {
		guard           *resourcesv1alpha1.PruneGuard
		before, deleted int
		confirmed       string
		says            string
	}{
		"no guard":                              {nil, 9, 9, "", ""},
		"nothing to prune":                      {&resourcesv1alpha1.PruneGuard{}, 0, 0, "", ""},
		"nothing is left":                       {&resourcesv1alpha1.PruneGuard{}, 9, 9, "", "no object of the inventory would be left"},
		"objects that came later go, too":       {&resourcesv1alpha1.PruneGuard{}, 9, 12, "", "no object of the inventory would be left"},
		"some are left":                         {&resourcesv1alpha1.PruneGuard{}, 10, 9, "", ""},
		"too many":                              {percent(50), 10, 6, "", "6 of 10 objects were removed from the manifests, and are kept: that is more than 50 %"},
		"just enough":                           {percent(50), 10, 5, "", ""},
		"all are renamed":                       {percent(50), 200, 200, "", "200 of 200"},
		"35 of 100 are removed, and 50 are new": {percent(30), 100, 35, "", "more than 30 %"},
		"confirmed":                             {&resourcesv1alpha1.PruneGuard{}, 9, 9, "0123456789ab", ""},
		"another one was":                       {&resourcesv1alpha1.PruneGuard{}, 9, 9, "0123456789ac", "confirm-prune=0123456789ab"},
		"none may ever":                         {percent(0), 100, 1, "", "more than 0 %"},
		"a part is confirmed":                   {&resourcesv1alpha1.PruneGuard{}, 9, 9, "0123", "no object of the inventory"},
	} {
		mr := &resourcesv1alpha1.ManagedResource{}
		mr.Spec.Prune = test.guard
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationConfirmPrune: test.confirmed}
		err := guardPrune(mr, test.before, test.deleted, checksum)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// guardWorld simulates reconciles of one ManagedResource, as far as the prune guard is concerned.
type guardWorld struct {
	*testing.T
	random *rand.Rand
	mr     *resourcesv1alpha1.ManagedResource
	stored inventory
	wanted []object.Manifest
	// before are the objects that were in the inventory the last time when all its objects were wanted, and that still exist.
	before map[object.Key]bool
}

// change changes the manifests: some objects are removed, some are added.
func (w *guardWorld) change() {
	share := w.random.Float64() * w.random.Float64()
	w.wanted = slices.DeleteFunc(slices.Clone(w.wanted), func(object.Manifest) bool { return w.random.Float64() < share })
	for range w.random.IntN(30) {
		w.wanted = append(w.wanted, manifestOf(configMapKind, "a", fmt.Sprint("object-", w.random.IntN(200))))
	}
}

// reconcile simulates a reconcile. It may end before anything is pruned, or be unable to read all manifests.
func (w *guardWorld) reconcile(ends, unread bool) {
	w.Helper()
	p := &pass{mr: w.mr, operation: opApply}
	in := input{recorded: w.stored, manifests: w.wanted, checksum: strings.Repeat("0", 64)}
	if unread {
		in.manifests = slices.DeleteFunc(slices.Clone(w.wanted), func(object.Manifest) bool { return w.random.IntN(3) == 0 })
		in.problems = []problem{{err: errTimeout}}
	}
	w.note(p, in)
	plan := plan{input: in, baseline: p.baselineOf(in)}
	plan.recorded, _ = in.recorded.union(in.manifests)
	w.mr.Status.PruneBaseline = p.baselineAfter(plan, plan.recorded, nil)
	w.stored = plan.recorded
	w.note(p, in)
	if ends {
		return
	}
	unwanted := p.unwanted(plan.input)
	fresh := w.mr.Status.PruneBaseline == int32(len(w.before)) // no object was deleted since
	err := guardPrune(w.mr, plan.baseline, len(unwanted), in.checksum)
	w.check(err, unwanted, fresh)
	var done changeSet
	if err == nil {
		for key, entry := range unwanted {
			if w.random.IntN(3) > 0 { // the other deletions take longer
				done.changes = append(done.changes, change{Ref: refOfEntry(entry), action: actionDelete})
				delete(w.before, key)
			}
		}
	}
	w.stored = done.remaining(plan.recorded)
	w.mr.Status.PruneBaseline = p.baselineAfter(plan, w.stored, done.changes)
	w.note(p, in)
}

// note records the inventory if every object in it is wanted.
func (w *guardWorld) note(p *pass, in input) {
	if len(p.outsideManifests(in, w.stored)) == 0 {
		w.before = map[object.Key]bool{}
		for key := range w.stored {
			w.before[key] = true
		}
	}
}

func (w *guardWorld) check(err error, unwanted inventory, fresh bool) {
	w.Helper()
	most, left := int(*w.mr.Spec.Prune.MaxPercent), 0
	for key := range w.before {
		if _, goes := unwanted[key]; !goes {
			left++
		}
	}
	tooMany := len(unwanted)*100 > len(w.before)*most
	switch {
	case len(unwanted) == 0:
	case err == nil && (left == 0 || tooMany):
		w.Fatalf("%d of %d objects may be deleted at %d %%; %d remain", len(unwanted), len(w.before), most, left)
	case err != nil && fresh && !tooMany && len(unwanted) < len(w.before):
		w.Fatalf("%d of %d objects must not be deleted at %d %%: %v", len(unwanted), len(w.before), most, err)
	}
}

// TestPruneGuardOverRandomInventories checks that the guard never allows the deletion of more than the allowed share of the
// objects that existed when every object was wanted, and never of all of them, whatever changes at once or before.
func TestPruneGuardOverRandomInventories(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &guardWorld{T: t, random: random, stored: inventory{}, mr: &resourcesv1alpha1.ManagedResource{}}
		w.mr.Spec.Prune = &resourcesv1alpha1.PruneGuard{MaxPercent: ptr.To(int32(random.IntN(101)))}
		for range 12 {
			if random.IntN(2) == 0 {
				w.change()
			}
			w.reconcile(random.IntN(6) == 0, random.IntN(6) == 0)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}
