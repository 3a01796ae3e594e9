package registry

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Operations are values of the annotation gardener.cloud/operation that increase the generation of an object.
type Operations struct {
	// Once are operations that the API server removes in the same write.
	Once []string
	// Kept are operations that their controller removes. They increase the generation only in the write that sets them.
	Kept []string
}

// Requested reports whether an update requests one of the operations. It removes the annotation if the operation is in
// Once.
func (o Operations) Requested(updated, old metav1.Object) bool {
	annotations := updated.GetAnnotations()
	operation := annotations[constants.AnnotationGardenerOperation]
	if slices.Contains(o.Once, operation) {
		delete(annotations, constants.AnnotationGardenerOperation)
		return true
	}
	return slices.Contains(o.Kept, operation) && old.GetAnnotations()[constants.AnnotationGardenerOperation] != operation
}

// TurnsTrue reports whether an update changes an annotation to a true value.
func TurnsTrue(updated, old metav1.Object, annotation string) bool {
	return isTrue(updated, annotation) && !isTrue(old, annotation)
}

func isTrue(o metav1.Object, annotation string) bool {
	value, err := strconv.ParseBool(o.GetAnnotations()[annotation])
	return err == nil && value
}
