package managedresource

import (
	"fmt"

	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// confirmationLength is how much of the manifests' checksum confirms a prune.
const confirmationLength = 12

// guardPrune returns an error if the prune guard of a ManagedResource keeps what left the manifests.
func guardPrune(mr *resourcesv1alpha1.ManagedResource, wanted, unwanted int, checksum string) error {
	if mr.Spec.Prune == nil || unwanted == 0 {
		return nil
	}
	confirmation := checksum[:confirmationLength]
	if mr.Annotations[resourcesv1alpha1.AnnotationConfirmPrune] == confirmation {
		return nil
	}
	total, most := wanted+unwanted, int(ptr.Deref(mr.Spec.Prune.MaxPercent, 100))
	var why string
	switch {
	case wanted == 0:
		why = "the manifests hold no object any more"
	case unwanted*100 > total*most:
		why = fmt.Sprintf("that is more than %d %%", most)
	default:
		return nil
	}
	return fmt.Errorf("%d of %d objects left the manifests, and are kept: %s; restore the manifests, or confirm with the "+
		"annotation %s=%s", unwanted, total, why, resourcesv1alpha1.AnnotationConfirmPrune, confirmation)
}
