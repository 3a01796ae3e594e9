package rules

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// KnownOperation reports an operation that the kind of an object does not have.
func KnownOperation(object metav1.Object, known ...string) field.ErrorList {
	operation := object.GetAnnotations()[constants.AnnotationGardenerOperation]
	if operation == "" {
		return nil
	}
	return OptionalOneOf(&operation, field.NewPath("metadata", "annotations").Key(constants.AnnotationGardenerOperation), known...)
}

// OperationReplaced reports an operation that replaces another one that has not been executed yet.
func OperationReplaced(updated, old metav1.Object) field.ErrorList {
	operation := updated.GetAnnotations()[constants.AnnotationGardenerOperation]
	before := old.GetAnnotations()[constants.AnnotationGardenerOperation]
	if operation == "" || before == "" || operation == before {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(constants.AnnotationGardenerOperation)
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("must not overwrite operation %q with %q", before, operation))}
}
