package table

import (
	"errors"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func key(name string) flow.Key { return flow.Key{Namespace: "n", Name: name} }

func keys(names ...string) []flow.Key { return Table{Key: key}.keys(names...) }

func none() ([]client.Object, error) { return nil, nil }

// tableOf returns a table with a namespace, a server, its client, and the given rows. All of them exist.
func tableOf(rows ...Part) Table {
	table := Table{Key: key, Prepare: func(Target, *flow.Bundle) {}, Now: now, Deadline: now.Add(time.Hour), Parts: append([]Part{
		{Name: "namespace", Contains: true, Objects: none},
		{Name: "server", Objects: none, NeedsAsleep: []Need{RolledOut("client")}},
		{Name: "client", Objects: none, Needs: []Need{Healthy("server")}, NeedsAsleep: []Need{}},
	}, rows...)}
	for _, part := range table.Parts {
		table.Emitted = append(table.Emitted, key(part.Name))
	}
	return table
}

// TestAdd checks what a row adds to a plan: a bundle, a wait, a tombstone, a key to keep, or nothing.
func TestAdd(t *testing.T) {
	invalid := func() ([]client.Object, error) { return nil, errors.New("invalid") }
	for name, test := range map[string]struct {
		part                 Part
		change               func(*Table)
		bundle, tombstone    bool
		keep                 bool
		release              flow.Release
		wait                 string
		deadline, anyRemoval bool
	}{
		"bundle":                     {part: Part{Objects: none}, bundle: true},
		"input not known":            {part: Part{Unknown: "no address"}, wait: "row-known", deadline: true},
		"invalid":                    {part: Part{Objects: invalid}, wait: "row-valid", deadline: true},
		"absent, kept":               {part: Part{Absent: "others have it"}, keep: true},
		"absent, released":           {part: Part{Absent: "others have it", Released: true}, tombstone: true, release: flow.ReleaseBundle, anyRemoval: true},
		"absent, removed":            {part: Part{Absent: "disabled", Removed: true}, tombstone: true, anyRemoval: true},
		"absent, removed at once":    {part: Part{Absent: "disabled", Removed: true, DeletedAfter: []string{"client"}}, tombstone: true},
		"absent, never existed":      {part: Part{Absent: "disabled", Removed: true}, change: func(t *Table) { t.Emitted = nil }},
		"absent elsewhere, none":     {part: Part{Absent: "others have it"}, change: func(t *Table) { t.Emitted = nil }},
		"unchanged":                  {part: Part{Unchanged: true, Objects: invalid}},
		"removable, but not absent":  {part: Part{Removed: true, Objects: none}, bundle: true},
		"namespace missing":          {part: Part{Objects: none}, change: func(t *Table) { t.Uncontained = "no namespace" }, wait: "row-known", deadline: true},
		"Cluster old, does not read": {part: Part{Objects: none}, change: func(t *Table) { t.OldCluster = "old" }, bundle: true},
		"Cluster old": {
			part: Part{Objects: none, ReadsCluster: true}, change: func(t *Table) { t.OldCluster = "old" }, wait: "row-known", deadline: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.part.Name = "row"
			table, plan := tableOf(test.part), flow.Plan{}
			if test.change != nil {
				test.change(&table)
			}
			table.Add(&plan, test.part)
			waits := ""
			if len(plan.Waits) == 1 {
				waits = plan.Waits[0].Name
				if !slices.Equal(plan.Waits[0].Holds, keys("row")) || plan.Waits[0].Deadline.IsZero() == test.deadline {
					t.Errorf("the wait is %+v", plan.Waits[0])
				}
			}
			if (len(plan.Bundles) == 1) != test.bundle || (len(plan.Tombstones) == 1) != test.tombstone || waits != test.wait {
				t.Errorf("bundles %v, tombstones %v, waits %v", plan.Bundles, plan.Tombstones, plan.Waits)
			}
			if slices.Equal(plan.Keeps, keys("row")) != test.keep {
				t.Errorf("it keeps %v", plan.Keeps)
			}
			if test.tombstone && plan.Tombstones[0].Release != test.release {
				t.Errorf("it is deleted with %+v", plan.Tombstones[0])
			}
			if test.tombstone && (plan.Tombstones[0].After == nil) != test.anyRemoval {
				t.Errorf("it is deleted after %v", plan.Tombstones[0].After)
			}
		})
	}
}

// TestOrder checks the order of creation and of hibernation, and that nothing waits for an absent part.
func TestOrder(t *testing.T) {
	row := Part{Name: "row", Objects: none, Needs: []Need{Applied("server", "gone"), Healthy("client")}}
	table := tableOf(row, Part{Name: "gone", Absent: "others have it"})
	for name, test := range map[string]struct{ awake, asleep []flow.Key }{
		"server": {nil, keys("client")},
		"client": {keys("server"), nil},
		"row":    {keys("server", "client"), keys("server", "client")},
	} {
		for asleep, want := range map[bool][]flow.Key{false: test.awake, true: test.asleep} {
			table.Asleep = asleep
			part, _ := table.Part(name)
			bundle, err := table.Bundle(part)
			var needs []flow.Key
			for _, dependency := range bundle.Spec.DependsOn {
				needs = append(needs, flow.Key{Namespace: dependency.Namespace, Name: dependency.Name})
			}
			if err != nil || !slices.Equal(needs, want) {
				t.Errorf("%s, asleep %t: needs %v instead of %v, %v", name, asleep, needs, want, err)
			}
		}
	}
}

// TestTombstone checks the order of deletion.
func TestTombstone(t *testing.T) {
	table := tableOf(
		Part{Name: "declared", Objects: none, Confirmed: true, DeletedAfter: []string{"client"}, Outlives: []string{"server"}},
		Part{Name: "never", Absent: "others have it"},
	)
	table.Emitted = append(keys("unknown"), table.Emitted[:4]...)
	for name, after := range map[string][]flow.Key{
		"namespace": keys("unknown", "server", "client", "declared"), "server": keys("client"), "client": keys(),
		"declared": keys("client", "server"), "unknown": nil,
	} {
		tombstone := table.Tombstone(key(name))
		if !slices.Equal(tombstone.After, after) || tombstone.Confirm != (name == "declared") || (tombstone.After == nil) != (after == nil) {
			t.Errorf("%s: %+v", name, tombstone)
		}
	}
	namespace, _ := table.Part("namespace")
	bundle, err := table.Bundle(namespace)
	if err != nil || !slices.Equal(bundle.DeleteAfter, keys("server", "client", "declared")) {
		t.Errorf("the namespace records that it is deleted after %v, %v", bundle.DeleteAfter, err)
	}
	declared, _ := table.Part("declared")
	if bundle, err = table.Bundle(declared); err != nil || !slices.Equal(bundle.DeleteAfter, keys("client")) {
		t.Errorf("the order of the deletion of the owner is recorded: %v, %v", bundle.DeleteAfter, err)
	}
}
