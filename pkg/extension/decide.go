package extension

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Responsible reports whether an object has a type and one of the classes. Without classes, only the class shoot matches.
func Responsible(object extensionsv1alpha1.Object, ofType string, classes []extensionsv1alpha1.ExtensionClass) bool {
	spec := object.GetExtensionSpec()
	class := extensionsv1alpha1.ExtensionClassShoot
	if spec.Class != nil {
		class = *spec.Class
	}
	if len(classes) == 0 {
		classes = []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot}
	}
	return spec.Type == ofType && slices.Contains(classes, class)
}

// operationOf returns the operation that gardenlet requests, or an empty string.
func operationOf(object extensionsv1alpha1.Object) string {
	return object.GetAnnotations()[constants.AnnotationGardenerOperation]
}

// decide returns the operation that is due for an object, or an empty string. begins and asks determine whether it is called.
func decide(object extensionsv1alpha1.Object, finalizer string) corev1beta1.LastOperationType {
	asked, last := operationOf(object), object.GetExtensionStatus().LastOperation
	deleting := object.GetDeletionTimestamp() != nil
	switch {
	case asked == constants.OperationWaitForState:
		return ""
	case deleting && !controllerutil.ContainsFinalizer(object, finalizer):
		return "" // nothing was created, or it was abandoned
	case asked == constants.OperationMigrate:
		return corev1beta1.LastOperationTypeMigrate
	case deleting:
		return corev1beta1.LastOperationTypeDelete
	case asked == constants.OperationRestore:
		return corev1beta1.LastOperationTypeRestore
	case last == nil:
		return corev1beta1.LastOperationTypeCreate
	case finished(last) && last.Type == corev1beta1.LastOperationTypeMigrate:
		return "" // another seed has taken over
	case !finished(last) && last.Type != corev1beta1.LastOperationTypeDelete:
		return last.Type
	}
	return corev1beta1.LastOperationTypeReconcile
}

func finished(last *corev1beta1.LastOperation) bool {
	return last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// begins reports whether an object is due when it is first seen: an operation is requested or not finished, or it is being deleted.
func begins(object extensionsv1alpha1.Object, ignoreOperation bool) bool {
	status := object.GetExtensionStatus()
	return operationOf(object) != "" || object.GetDeletionTimestamp() != nil || !finished(status.LastOperation) ||
		ignoreOperation && status.ObservedGeneration != object.GetGeneration()
}

// request is a request to an extension.
type request struct {
	operation, timestamp string
	deleting, force      bool
	generation           int64
}

func requestOf(object extensionsv1alpha1.Object, ignoreOperation bool) request {
	annotations := object.GetAnnotations()
	asked := request{
		operation: operationOf(object), timestamp: annotations[constants.AnnotationGardenerTimestamp],
		deleting: object.GetDeletionTimestamp() != nil, force: resourcesv1alpha1.Truthy(annotations[constants.AnnotationConfirmationForceDeletion]),
	}
	if ignoreOperation {
		asked.generation = object.GetGeneration()
	}
	return asked
}

// asks reports whether a change of an object is a request. Writes of the controller itself are not: its status, and the
// start of an operation.
func asks(before, after extensionsv1alpha1.Object, ignoreOperation bool) bool {
	was, is := requestOf(before, ignoreOperation), requestOf(after, ignoreOperation)
	return was != is && (is.operation != "" || is.deleting || was.generation != is.generation)
}

// unasked reports whether no operation of an object is requested or unfinished, so that the call was triggered by one of its sources.
func unasked(object extensionsv1alpha1.Object, ignoreOperation bool) bool {
	return !begins(object, ignoreOperation)
}

// announced reports whether the status already contains the operation as running.
func announced(object extensionsv1alpha1.Object, operation corev1beta1.LastOperationType) bool {
	last := object.GetExtensionStatus().LastOperation
	if last == nil || finished(last) || last.Type != operation {
		return false
	}
	switch operationOf(object) {
	case "":
		return true
	case constants.OperationReconcile:
		return false
	}
	// The annotations of other operations remain until they have succeeded.
	since, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[constants.AnnotationGardenerTimestamp])
	return err != nil || !last.LastUpdateTime.Time.Before(since.Truncate(time.Second))
}

// forced reports whether an object is deleted without calling the infrastructure.
func forced(object extensionsv1alpha1.Object, cluster *Cluster) bool {
	return resourcesv1alpha1.Truthy(object.GetAnnotations()[constants.AnnotationConfirmationForceDeletion]) || cluster != nil && cluster.ForceDeletion()
}
