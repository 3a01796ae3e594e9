package table

import (
	"slices"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Tombstone returns the tombstone of an existing bundle, if the owner is deleted. The order is that of the table, whatever
// the revision of the bundle recorded, for example while the owner hibernated. The part that contains the others is deleted
// after all bundles, also those that the table does not have. A bundle that the table does not have has no order.
func (t Table) Tombstone(key flow.Key) flow.Tombstone {
	tombstone := flow.Tombstone{Key: key}
	for _, part := range t.Parts {
		switch {
		case t.Key(part.Name) != key:
		case part.Contains:
			tombstone.Confirm, tombstone.After = part.Confirmed, t.others(key)
		default:
			tombstone.Confirm, tombstone.After = part.Confirmed, t.before(part)
		}
	}
	return tombstone
}

// removal returns the tombstone of a part that is deleted although the owner remains. It waits for the bundles that recorded
// a dependency on it, unless the order of its deletion is declared: that one counts for the deletion of the owner.
func (t Table) removal(part Part) flow.Tombstone {
	tombstone := flow.Tombstone{Key: t.Key(part.Name), Confirm: part.Confirmed}
	if part.DeletedAfter != nil {
		tombstone.After = []flow.Key{}
	}
	return tombstone
}

// before returns the bundles that must be deleted before that of a part, if the owner is deleted.
func (t Table) before(part Part) []flow.Key {
	names := t.deletedAfter(part)
	if names == nil {
		for _, other := range t.Parts {
			if t.needs(other, part.Name) {
				names = append(names, other.Name)
			}
		}
	}
	return t.keys(slices.Concat(names, part.Outlives)...)
}

// deletedAfter returns the parts that must be deleted before one, or nil for those that need it. The part that contains the
// others is deleted after all that the owner may have.
func (t Table) deletedAfter(part Part) []string {
	if !part.Contains {
		return part.DeletedAfter
	}
	names := make([]string, 0, len(t.Parts))
	for _, other := range t.Parts {
		never := other.Absent != "" && !other.Removed && !t.Emits(other.Name)
		if other.Name != part.Name && !never {
			names = append(names, other.Name)
		}
	}
	return names
}

// others returns the existing bundles except one.
func (t Table) others(key flow.Key) []flow.Key {
	return slices.DeleteFunc(slices.Clone(t.Emitted), func(other flow.Key) bool { return other == key })
}

// Gone returns how many of the bundles that the owner has, or had, do not exist any more.
func (t Table) Gone() int {
	gone := 0
	for _, part := range t.Parts {
		if part.Absent == "" && !t.Emits(part.Name) {
			gone++
		}
	}
	return gone
}
