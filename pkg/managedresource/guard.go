package managedresource

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// confirmationLength is how much of the manifests' checksum confirms a prune.
const confirmationLength = 12

// guardPrune returns an error if the prune guard of a ManagedResource refuses to delete that many objects. Before is how many objects the
// inventory held before they left the manifests: objects that the same manifests add do not count.
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
	return fmt.Errorf("%d of %d objects left the manifests, and are kept: %s; restore the manifests, or confirm with the "+
		"annotation %s=%s", deleted, before, why, resourcesv1alpha1.AnnotationConfirmPrune, confirmation)
}

// guard asks the prune guard about objects that are not wanted any more. If it refuses, guard returns those that are not deleted, but
// released, handed over or gone already.
func (p *pruning) guard(ctx context.Context, unwanted inventory) inventory {
	if guardPrune(p.mr, p.plan.baseline, len(unwanted), p.plan.checksum) == nil {
		return unwanted
	}
	living := inventory{}
	for _, change := range p.planPruning(ctx, unwanted, p.Live.Confirm(ctx, refsOfEntries(unwanted))) {
		switch change.action {
		case actionRelease, actionHandOver, actionForget:
			living[change.Key()] = unwanted[change.Key()]
		}
	}
	if p.guarded = guardPrune(p.mr, p.plan.baseline, len(unwanted)-len(living), p.plan.checksum); p.guarded == nil {
		return unwanted
	}
	return living
}
