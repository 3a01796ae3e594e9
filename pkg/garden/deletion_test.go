package garden

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestDeletionEnds deletes a Garden step by step: whatever may be deleted is deleted, until nothing is left. It checks the order.
func TestDeletionEnds(t *testing.T) {
	for name, in := range map[string]Inputs{"example": known(example(t)), "small": known(small())} {
		t.Run(name, func(t *testing.T) {
			in.Emitted = emittedOf(t, in)
			in.Deleting, in.Served, in.Users = true, true, &[]string{}
			var order []string
			for len(in.Emitted) > 0 {
				var deleted []flow.Key
				for _, tombstone := range planOf(t, in).Deletions() {
					if !slices.ContainsFunc(tombstone.After, func(key flow.Key) bool { return slices.Contains(in.Emitted, key) }) {
						deleted = append(deleted, tombstone.Key)
					}
				}
				if len(deleted) == 0 {
					t.Fatalf("nothing can be deleted of %v", in.Emitted)
				}
				for _, key := range deleted {
					order = append(order, key.Name)
				}
				in.Emitted = slices.DeleteFunc(slices.Clone(in.Emitted), func(key flow.Key) bool { return slices.Contains(deleted, key) })
			}
			before := func(first, second string) {
				t.Helper()
				a, b := slices.Index(order, first), slices.Index(order, second)
				if a < 0 || b < 0 || a >= b {
					t.Errorf("%s is not deleted before %s: %v", first, second, order)
				}
			}
			before(runtimeOf(gardenerprograms.ControllerManager), bundleAPIInVirtual)
			before(bundleAPIInVirtual, bundleAPI)
			before(bundleAPI, bundleEtcdMain)
			before(bundleAPI, bundleServer)
			before(bundleVirtualSystem, bundleVirtualManager)
			before(bundleOperatorAccess, bundleVirtualManager)
			before(bundleManagerRights, bundleVirtualManager)
			before(bundleVirtualManager, bundleServer)
			before(bundleServer, bundleEtcdMain)
			before(bundleServer, bundleEtcdEvents)
			before(bundleServer, bundleServerService)
			before(bundleEtcdMain, bundleEtcdOperator)
			if order[len(order)-1] != bundleManager {
				t.Errorf("the resource-manager is not deleted last: %v", order)
			}
		})
	}
}

// TestDeletionAsksFirst checks that nothing is deleted while something needs the Garden, or while that is not known.
func TestDeletionAsksFirst(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Inputs)
		why    string
	}{
		"unknown":                {func(in *Inputs) { in.Served = true }, "does not answer"},
		"a Seed":                 {func(in *Inputs) { in.Served, in.Users = true, &[]string{"Seed one"} }, "must be deleted first: Seed one"},
		"many":                   {func(in *Inputs) { in.Served, in.Users = true, ptrTo(slices.Repeat([]string{"Shoot a/b"}, 11)) }, ", and more"},
		"none":                   {func(in *Inputs) { in.Served, in.Users = true, &[]string{} }, ""},
		"begun, does not answer": {func(in *Inputs) { in.Served, in.Unused = true, true }, ""},
		"never served":           {func(*Inputs) {}, ""},
	} {
		in := known(small())
		in.Emitted, in.Deleting = emittedOf(t, in), true
		test.change(&in)
		plan := planOf(t, in)
		if test.why == "" {
			if len(plan.Tombstones) != len(in.Emitted) || len(plan.Waits) > 0 {
				t.Errorf("%s: %d of %d bundles are deleted, waits %v", name, len(plan.Tombstones), len(in.Emitted), plan.Waits)
			}
			continue
		}
		if len(plan.Tombstones) > 0 || len(plan.Waits) != 1 || !strings.Contains(plan.Waits[0].Reason, test.why) || plan.Next.IsZero() {
			t.Errorf("%s: deletes %v, waits %v", name, plan.Tombstones, plan.Waits)
		}
	}
}

func ptrTo[T any](value T) *T { return &value }
