package migrate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// Manager is who owns fields of an object.
type Manager struct {
	Name string `json:"name"`
	// Operation is Apply for server-side apply, Update for everything else.
	Operation string `json:"operation"`
	// Fields is how many it owns, not counting those that contain others.
	Fields int `json:"fields"`
	// Keeps are those that it owns afterwards, too, of a manager from which fields are taken over.
	Keeps []string `json:"keeps,omitempty"`
}

// Handover is what becomes of the fields of an object.
type Handover struct {
	// Managers are those that own fields now, not counting the status.
	Managers []Manager `json:"managers,omitempty"`
	// Taken is how many fields go to the resource-manager that predecessors own now.
	Taken int `json:"taken"`
	// Removed are the fields of others that have no owner afterwards, as they are in no manifest.
	Removed []string `json:"removed,omitempty"`
}

// handoverOf compares who owns the fields of an object before and after.
func handoverOf(before, after []metav1.ManagedFieldsEntry, policy fieldowner.Policy) (Handover, error) {
	policy = policy.WithPredecessor(policy.FormerApplier(before))
	left := &fieldpath.Set{}
	leftTo := map[identity]*fieldpath.Set{}
	for _, entry := range after {
		fields, err := fieldowner.Fields(entry)
		if err != nil {
			return Handover{}, fmt.Errorf("read who owns its fields: %w", err)
		}
		left = left.Union(fields)
		leftTo[identityOf(entry)] = fields
	}
	var handover Handover
	removed, taken := &fieldpath.Set{}, &fieldpath.Set{}
	for _, entry := range before {
		if entry.Subresource != "" {
			continue
		}
		fields, err := fieldowner.Fields(entry)
		if err != nil {
			return Handover{}, fmt.Errorf("read who owns its fields: %w", err)
		}
		fields = fields.Leaves()
		manager := Manager{Name: entry.Manager, Operation: string(entry.Operation)}
		predecessor := policy.Predecessor(entry.Manager)
		if predecessor || !policy.Controller(entry.Manager) {
			kept := &fieldpath.Set{}
			if stays := leftTo[identityOf(entry)]; stays != nil {
				kept = fields.Intersection(stays)
			}
			gone := fields.Difference(left)
			removed = removed.Union(gone)
			if predecessor {
				manager.Keeps = pathsOf(kept)
				taken = taken.Union(fields.Difference(kept).Difference(gone))
			}
		}
		manager.Fields = fields.Size()
		handover.Managers = append(handover.Managers, manager)
	}
	handover.Taken, handover.Removed = taken.Size(), pathsOf(removed)
	return handover, nil
}

// identity distinguishes the managedFields entries of an object.
type identity struct{ manager, operation, version, subresource string }

func identityOf(entry metav1.ManagedFieldsEntry) identity {
	return identity{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}
}

// pathsOf names fields, such as .spec.replicas.
func pathsOf(set *fieldpath.Set) []string {
	var paths []string
	for path := range set.All() {
		paths = append(paths, path.String())
	}
	slices.Sort(paths)
	return paths
}
