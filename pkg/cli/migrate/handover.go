package migrate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// Manager is a field manager of an object.
type Manager struct {
	Name string `json:"name"`
	// Operation is Apply for server-side apply, or Update.
	Operation string `json:"operation"`
	// Fields is the number of fields that it owns, without fields that contain others.
	Fields int `json:"fields"`
	// Keeps are the fields that it still owns after the handover. It is only set for managers whose fields are taken
	// over.
	Keeps []string `json:"keeps,omitempty"`
}

// Handover describes the change of the field ownership of an object.
type Handover struct {
	// Managers are the current field managers, except those of the status.
	Managers []Manager `json:"managers,omitempty"`
	// Taken is the number of fields that move from predecessors to the resource-manager.
	Taken int `json:"taken"`
	// Removed are the fields of other managers that have no owner afterwards, because no manifest contains them.
	Removed []string `json:"removed,omitempty"`
}

// handoverOf compares the field ownership of an object before and after.
func handoverOf(before, after []metav1.ManagedFieldsEntry, policy fieldowner.Policy) (Handover, error) {
	policy = policy.WithPredecessor(policy.FormerApplier(before))
	left := &fieldpath.Set{}
	leftTo := map[identity]*fieldpath.Set{}
	for _, entry := range after {
		fields, err := fieldowner.Fields(entry)
		if err != nil {
			return Handover{}, fmt.Errorf("read the field ownership: %w", err)
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
			return Handover{}, fmt.Errorf("read the field ownership: %w", err)
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

// pathsOf returns the paths of fields, such as .spec.replicas.
func pathsOf(set *fieldpath.Set) []string {
	var paths []string
	for path := range set.All() {
		paths = append(paths, path.String())
	}
	slices.Sort(paths)
	return paths
}
