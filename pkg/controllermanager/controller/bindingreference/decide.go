package bindingreference

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/bindings"
)

// mark is what an object has while bindings of one kind refer to it.
type mark struct {
	label, finalizer string
	used             func(bindings.Use) bool
}

// marks has a mark for each kind of bindings.
var marks = []mark{
	{constants.LabelReferenceSecretBinding, constants.FinalizerSecretBinding, func(use bindings.Use) bool { return use.BySecretBinding }},
	{constants.LabelReferenceCredentialsBinding, constants.FinalizerCredentialsBinding, func(use bindings.Use) bool { return use.ByCredentialsBinding }},
}

// Decide returns the labels and finalizers that an object of a kind should have, from those that it has and from the bindings that refer
// to it. Quotas have another finalizer, and are not for one infrastructure. Objects that no binding has marked are not changed.
func Decide(kind string, object *metav1.ObjectMeta, use bindings.Use) (labels map[string]string, finalizers []string) {
	labels, finalizers = maps.Clone(object.Labels), slices.Clone(object.Finalizers)
	if labels == nil {
		labels = map[string]string{}
	}
	if !use.Any() && !isMarked(object) {
		return labels, finalizers
	}
	holder := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}}
	for _, mark := range marks {
		if !mark.used(use) {
			delete(labels, mark.label)
			controllerutil.RemoveFinalizer(holder, mark.finalizer)
			continue
		}
		labels[mark.label] = "true"
		if kind != bindings.Quota && object.DeletionTimestamp == nil { // the API server refuses new finalizers in a deletion
			controllerutil.AddFinalizer(holder, mark.finalizer)
		}
	}
	if kind != bindings.Quota {
		labels = bindings.ProviderLabels(labels, use.Providers)
		controllerutil.RemoveFinalizer(holder, constants.FinalizerExternalGardener) // of old versions of Gardener
	}
	return labels, holder.Finalizers
}

// isMarked reports whether bindings refer or have referred to an object.
func isMarked(object *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(marks, func(mark mark) bool {
		return object.Labels[mark.label] != "" || slices.Contains(object.Finalizers, mark.finalizer)
	})
}

// releases reports whether an object loses one of its finalizers.
func releases(before, after []string) bool {
	return slices.ContainsFunc(before, func(finalizer string) bool { return !slices.Contains(after, finalizer) })
}
