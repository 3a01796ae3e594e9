// Package live tells what became of objects in the target cluster, reduced to what decisions need.
package live

import (
	"bytes"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/directive"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Presence says what is known of an object.
type Presence int

const (
	// Unknown means that the object could not be read; see State.Err.
	Unknown Presence = iota
	// Absent means that the API server has no such object.
	Absent
	// Present means that the object exists.
	Present
	// KindNotServed means that the API server does not serve the object's kind, so nothing is known of the object.
	KindNotServed
)

// State is what was found of one object.
type State struct {
	Presence Presence
	// Observation is set if the object is present.
	Observation Observation
	// Err says why the presence is Unknown or KindNotServed.
	Err error
}

// Observation is an object reduced to what decisions need.
type Observation struct {
	UID             types.UID
	ResourceVersion string
	// Origin is the origin annotation: the ManagedResource that owns the object.
	Origin string
	// ManagedBy is the managed-by label.
	ManagedBy string
	// Labels and Annotations are the keys that the object has, sorted.
	Labels, Annotations []string
	// OwnedDigest tells whether the fields that the resource-manager owns changed hands; empty if it owns none.
	OwnedDigest string
	// OwnsReplicas is set if the resource-manager may own spec.replicas.
	OwnsReplicas bool
	// Displaceable are fields of predecessors and people that the resource-manager takes over; nil if there are none.
	Displaceable *fieldpath.Set
	// Deleting is when the object's deletion was asked for; zero if it was not.
	Deleting time.Time
	// Finalizers is set if something holds up the object's deletion.
	Finalizers bool
	// FinalizeAfter is the annotation that says when its finalizers are removed.
	FinalizeAfter string
	// Directive is how the live object wants to be handled.
	Directive directive.Directive
	// GarbageCollectable is set if the garbage collector deletes the object when nothing refers to it.
	GarbageCollectable bool
}

// Observe reduces an object's metadata. The policy says whose fields are taken over.
func Observe(meta *metav1.PartialObjectMetadata, policy fieldowner.Policy) Observation {
	observation := Observation{
		UID:                meta.UID,
		ResourceVersion:    meta.ResourceVersion,
		Origin:             meta.Annotations[resourcesv1alpha1.AnnotationOrigin],
		ManagedBy:          meta.Labels[resourcesv1alpha1.LabelManagedBy],
		Labels:             slices.Sorted(maps.Keys(meta.Labels)),
		Annotations:        slices.Sorted(maps.Keys(meta.Annotations)),
		Finalizers:         len(meta.Finalizers) > 0,
		FinalizeAfter:      meta.Annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter],
		Directive:          directive.Of(meta.Annotations),
		GarbageCollectable: resourcesv1alpha1.Truthy(meta.Labels[resourcesv1alpha1.LabelGarbageCollectableReference]),
	}
	if meta.DeletionTimestamp != nil {
		observation.Deleting = meta.DeletionTimestamp.Time
	}
	if owned := fieldowner.Owned(meta.ManagedFields); owned != nil {
		// Times are left out: an apply without effect may not move them.
		observation.OwnedDigest = object.Digest([]byte(owned.APIVersion), owned.FieldsV1.GetRawBytes())
		observation.OwnsReplicas = bytes.Contains(owned.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`))
	}
	// Fields that cannot be read are nobody's to take.
	displaceable, err := fieldowner.Displaceable(meta.ManagedFields, policy, Preserved(meta))
	if err == nil && !observation.Directive.Merge {
		observation.Displaceable = displaceable
	}
	return observation
}

// Preserved returns the fields that a live object asks to be left as they are.
func Preserved(meta *metav1.PartialObjectMetadata) []fieldowner.Pattern {
	if !resourcesv1alpha1.Truthy(meta.Annotations[resourcesv1alpha1.AnnotationPreserveResources]) {
		return nil
	}
	return fieldowner.ComputeResources()
}
