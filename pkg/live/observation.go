// Package live tells what became of objects in the target cluster, reduced to what decisions need.
package live

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
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
	// OwnedDigest tells whether the fields that the resource-manager owns changed hands; empty if it owns none.
	OwnedDigest string
	// Deleting is set once the object has a deletion timestamp.
	Deleting bool
	// Keep is set if the object asks never to be deleted.
	Keep bool
}

// Observe reduces an object's metadata.
func Observe(meta *metav1.PartialObjectMetadata) Observation {
	return Observation{
		UID:             meta.UID,
		ResourceVersion: meta.ResourceVersion,
		Origin:          meta.Annotations[resourcesv1alpha1.AnnotationOrigin],
		ManagedBy:       meta.Labels[resourcesv1alpha1.LabelManagedBy],
		OwnedDigest:     ownedDigest(meta.ManagedFields),
		Deleting:        meta.DeletionTimestamp != nil,
		Keep:            truthy(meta.Annotations[resourcesv1alpha1.AnnotationKeepObject]),
	}
}

// ownedDigest digests the field sets that server-side apply recorded for us. The API server writes them in one order,
// and takes out a field as soon as somebody else changes it. Times are left out: a no-op apply may not move them.
func ownedDigest(entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		if entry.Manager == resourcesv1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.FieldsV1 != nil {
			return object.Digest([]byte(entry.APIVersion), entry.FieldsV1.GetRawBytes())
		}
	}
	return ""
}

func truthy(value string) bool {
	parsed, err := strconv.ParseBool(value)
	return err == nil && parsed
}
