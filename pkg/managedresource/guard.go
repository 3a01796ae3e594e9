package managedresource

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// confirmationLength is the length of the prefix of the manifests' checksum that confirms a prune.
const confirmationLength = 12

// guardPrune returns an error if the prune guard of a ManagedResource refuses to delete this number of objects. Before
// is the number of objects in the inventory before the manifests changed. Objects that the same change adds do not
// count.
func guardPrune(mr *resourcesv1alpha1.ManagedResource, before, deleted int, checksum string) error {
	if mr.Spec.Prune == nil || deleted == 0 {
		return nil
	}
	confirmation := checksum[:confirmationLength]
	if mr.Annotations[resourcesv1alpha1.AnnotationConfirmPrune] == confirmation {
		return nil
	}
	most := int(ptr.Deref(mr.Spec.Prune.MaxPercent, 100))
	var why string
	switch {
	case deleted >= before:
		why = "no object of the inventory would be left"
	case deleted*100 > before*most:
		why = fmt.Sprintf("that is more than %d %%", most)
	default:
		return nil
	}
	return fmt.Errorf("%d of %d objects were removed from the manifests, and are kept: %s; restore the manifests, or confirm with the "+
		"annotation %s=%s", deleted, before, why, resourcesv1alpha1.AnnotationConfirmPrune, confirmation)
}

// guard checks the deletion of objects that are no longer wanted. If the prune guard refuses it, guard returns only the
// objects that are not deleted, but released, handed over or forgotten.
func (p *pruning) guard(ctx context.Context, unwanted inventory) inventory {
	if guardPrune(p.mr, p.plan.baseline, len(unwanted), p.plan.checksum) == nil {
		return unwanted
	}
	harmless := inventory{}
	for _, change := range p.planPruning(ctx, unwanted, p.Live.Confirm(ctx, refsOfEntries(unwanted))) {
		switch change.action {
		case actionRelease, actionHandOver, actionForget:
			harmless[change.Key()] = unwanted[change.Key()]
		}
	}
	if p.guarded = guardPrune(p.mr, p.plan.baseline, len(unwanted)-len(harmless), p.plan.checksum); p.guarded == nil {
		return unwanted
	}
	return harmless
}
