package backup

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// DeletingEvery is how often an object is checked while its extension object is being deleted.
	DeletingEvery = 5 * time.Second
	// ErrorProgress is the reported progress of a failed operation.
	ErrorProgress = 50
)

// Declared passes changes of the specification and annotations, and deletions.
func Declared() predicate.Predicate {
	deleting := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetDeletionTimestamp() != nil })
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deleting)
}

// Keep adds the finalizer of gardenlet to an object of the garden. It returns false for an object that is being deleted
// without this finalizer, which gardenlet ignores.
func (s *Seed) Keep(ctx context.Context, object client.Object) (bool, error) {
	if controllerutil.ContainsFinalizer(object, constants.GardenerName) {
		return true, nil
	}
	if object.GetDeletionTimestamp() != nil {
		return false, nil
	}
	add := func(o client.Object) bool { return controllerutil.AddFinalizer(o, constants.GardenerName) }
	return true, s.Finalizers(ctx, object, add)
}

// ReadExtension reads an extension object. It returns false if the object or its kind does not exist.
func ReadExtension(ctx context.Context, from client.Reader, kind, name string, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Name: name}, into)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the extension's %s %s: %w", kind, name, err)
	}
	return true, nil
}

// ExtensionOf returns the relevant fields of a live extension object.
func ExtensionOf(live extensionsv1alpha1.Object) *Extension {
	return &Extension{
		Generation: live.GetGeneration(), Annotations: live.GetAnnotations(),
		Deleting: live.GetDeletionTimestamp() != nil, Status: *live.GetExtensionStatus(),
	}
}
