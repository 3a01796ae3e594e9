// Package confirmation checks that the deletion of an object is confirmed by an annotation.
package confirmation

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Check returns an error if an object must not be deleted, because its deletion is not confirmed.
func Check(object metav1.Object) error {
	if Is(object) {
		return nil
	}
	const annotation = constants.AnnotationConfirmationDeletion
	return fmt.Errorf("must have a %q annotation to delete: set it to true, with kubectl annotate … %s=true, if this object and all that "+
		"belongs to it shall be deleted", annotation, annotation)
}

// Is reports whether the deletion of an object is confirmed.
func Is(object metav1.Object) bool {
	value, err := strconv.ParseBool(object.GetAnnotations()[constants.AnnotationConfirmationDeletion])
	return err == nil && value
}
