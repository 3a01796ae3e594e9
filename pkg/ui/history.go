package ui

import (
	"maps"
	"slices"
	"strconv"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// maxChanges is the maximum number of changes in memory, of all ManagedResources together.
	maxChanges = 5000
	// maxNamed is the maximum number of objects named in a change.
	maxNamed = 20
)

// Kinds of changes.
const (
	changedState     = "state"
	changedCondition = "condition"
	changedSpec      = "spec"
	changedObjects   = "objects"
	changedCreated   = "created"
	changedDeleted   = "deleted"
)

// Change is an observed change of a ManagedResource.
type Change struct {
	At        int64  `json:"at"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// What is state, condition, spec, objects, created or deleted.
	What string `json:"what"`
	// Condition is the type of the changed condition. From and To are its status, or the state, or the generation.
	Condition string `json:"condition,omitempty"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	// Manager is the field manager that changed the spec. It is empty if unknown.
	Manager string `json:"manager,omitempty"`
	// Applied are objects that were applied, and Gone are objects that left the inventory. The counts include objects
	// that are not
	// named.
	Applied      []string `json:"applied,omitempty"`
	Gone         []string `json:"gone,omitempty"`
	AppliedCount int      `json:"appliedCount,omitempty"`
	GoneCount    int      `json:"goneCount,omitempty"`
}

// differences returns the changes between two versions of a ManagedResource. Either may be nil.
func differences(before, after *record, now time.Time) []Change {
	at := func(r *record, what string) Change {
		return Change{At: seconds(now), Namespace: r.Namespace, Name: r.Name, What: what}
	}
	switch {
	case after == nil:
		return []Change{at(before, changedDeleted)}
	case before == nil || before.UID != after.UID:
		return []Change{at(after, changedCreated)}
	}
	var changes []Change
	if before.generation != after.generation {
		change := at(after, changedSpec)
		change.From, change.To = strconv.FormatInt(before.generation, 10), strconv.FormatInt(after.generation, 10)
		change.Manager = writerOf(before.writes, after.writes)
		changes = append(changes, change)
	}
	if change := at(after, changedObjects); compareObjects(before, after, &change) {
		changes = append(changes, change)
	}
	for _, condition := range after.conditions {
		former := conditionOf(before.conditions, condition.Type)
		if former != nil && former.Status == condition.Status && former.Reason == condition.Reason && former.Message == condition.Message {
			continue
		}
		change := at(after, changedCondition)
		change.Condition, change.To, change.Reason, change.Message = condition.Type, condition.Status, condition.Reason, condition.Message
		if former != nil {
			change.From = former.Status
		}
		changes = append(changes, change)
	}
	if before.row.State != after.row.State {
		change := at(after, changedState)
		change.From, change.To, change.Message = string(before.row.State), string(after.row.State), after.row.Message
		changes = append(changes, change)
	}
	return changes
}

// compareObjects reports whether objects were applied or left the inventory. An entry without a digest is about to be applied.
func compareObjects(before, after *record, change *Change) bool {
	if slices.Equal(before.entries, after.entries) {
		return false
	}
	former, present := digestsOf(before.entries), digestsOf(after.entries)
	for _, title := range slices.Sorted(maps.Keys(present)) {
		if digest := present[title]; digest != "" && former[title] != digest {
			change.AppliedCount++
			if former[title] == "" {
				title += " (new)"
			}
			if len(change.Applied) < maxNamed {
				change.Applied = append(change.Applied, title)
			}
		}
	}
	for _, title := range slices.Sorted(maps.Keys(former)) {
		if _, there := present[title]; !there {
			change.GoneCount++
			if len(change.Gone) < maxNamed {
				change.Gone = append(change.Gone, title)
			}
		}
	}
	return change.AppliedCount+change.GoneCount > 0
}

// write is the last write of a field manager, except those of the status, from metadata.managedFields.
type write struct {
	manager unique.Handle[string]
	at      int64
}

func writesOf(mr *resourcesv1alpha1.ManagedResource) []write {
	var writes []write
	for _, fields := range mr.ManagedFields {
		if fields.Subresource == "" && fields.Time != nil {
			writes = append(writes, write{unique.Make(fields.Manager), fields.Time.Unix()})
		}
	}
	return writes
}

// writerOf returns the field manager of the writes since the version before. It is empty unless there is exactly one.
func writerOf(before, after []write) string {
	var found []string
	for _, each := range after {
		if !slices.Contains(before, each) {
			found = append(found, each.manager.Value())
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// digestsOf returns the digests of objects by their titles.
func digestsOf(entries []entry) map[string]string {
	digests := make(map[string]string, len(entries))
	for _, each := range entries {
		digests[each.title()] = each.digest
	}
	return digests
}

// history contains the latest changes in a ring buffer.
type history struct {
	changes []Change
	// next is the index of the oldest change, after the maximum was reached.
	next int
}

func (h *history) add(changes []Change) {
	for _, change := range changes {
		if len(h.changes) < maxChanges {
			h.changes = append(h.changes, change)
			continue
		}
		h.changes[h.next] = change
		h.next = (h.next + 1) % maxChanges
	}
}

// of returns the changes of a ManagedResource, the latest first.
func (h *history) of(name types.NamespacedName) []Change {
	found := []Change{}
	for i := range h.changes {
		change := h.changes[(h.next+len(h.changes)-1-i)%len(h.changes)]
		if change.Namespace == name.Namespace && change.Name == name.Name {
			found = append(found, change)
		}
	}
	return found
}

// seconds returns a Unix time in seconds. It returns 0 for the zero time.
func seconds(when time.Time) int64 {
	if when.IsZero() {
		return 0
	}
	return when.Unix()
}
