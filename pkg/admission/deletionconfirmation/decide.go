package deletionconfirmation

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// confirmed returns an error if an object must not be deleted, because its deletion is not confirmed.
func confirmed(object metav1.Object) error {
	if isConfirmed(object) {
		return nil
	}
	const annotation = constants.AnnotationConfirmationDeletion
	return fmt.Errorf("must have a %q annotation to delete: set it to true, with kubectl annotate … %s=true, if this object and all that "+
		"belongs to it shall be deleted", annotation, annotation)
}

func isConfirmed(object metav1.Object) bool {
	value, err := strconv.ParseBool(object.GetAnnotations()[constants.AnnotationConfirmationDeletion])
	return err == nil && value
}

// recordConfirmer stores in an object who confirmed its deletion. old is the stored object, or nil for a new one. A
// confirmation that is withdrawn and given again is that of another user.
func recordConfirmer(object, old metav1.Object, user string) {
	annotations, confirmer := object.GetAnnotations(), ""
	switch {
	case !isConfirmed(object):
	case old != nil && isConfirmed(old):
		confirmer = old.GetAnnotations()[constants.AnnotationDeletionConfirmedBy]
	default:
		confirmer = user
	}
	if confirmer == "" {
		delete(annotations, constants.AnnotationDeletionConfirmedBy)
		return
	}
	annotations[constants.AnnotationDeletionConfirmedBy] = confirmer
}
