// Package live provides the state of the objects in the target cluster. It watches each kind, either by metadata or,
// for health checks, as whole objects, and reduces objects to what decisions require.
package live

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Presence is whether an object exists.
type Presence int

const (
	// Unknown means that the object could not be read. See State.Err.
	Unknown Presence = iota
	// Absent means that the object does not exist.
	Absent
	// Present means that the object exists.
	Present
	// KindNotServed means that the API server does not serve the kind of the object, so that the state of the object is
	// not known.
	KindNotServed
)

// State is the state of one object.
type State struct {
	Presence Presence
	// Observation is set if the object is present.
	Observation Observation
	// Finished is set if the object is absent, and was a finished Job with a TTL when it was deleted.
	Finished bool
	// Err is the reason why Presence is Unknown or KindNotServed.
	Err error
}

// Observation is an object reduced to what decisions require. A View stores it in a third of its memory.
type Observation struct {
	UID             types.UID
	ResourceVersion string
	// Origin is the origin annotation, which names the ManagedResource that owns the object.
	Origin string
	// ManagedBy is the managed-by label.
	ManagedBy string
	// Labels and Annotations are the keys of the labels and annotations of the object.
	Labels, Annotations Keys
	// OwnedDigest is a digest of the fields that the resource-manager owns. It is empty if the resource-manager owns none.
	OwnedDigest string
	// Owned is a filter that detects fields that the resource-manager certainly does not own.
	Owned fieldowner.FieldFilter
	// Unlabelled is set if the object has a pod template without the managed-by label.
	Unlabelled bool
	// TakeOverCandidates are fields of other owners that the resource-manager takes over. It is nil if there are none.
	TakeOverCandidates *fieldpath.Set
	// FormerApplier is the field manager that applied the object for a ManagedResource before the resource-manager did. It
	// is empty if there is none, or if the policy names it.
	FormerApplier string
	// Seen is when a watch first showed the object in this state, in nanoseconds of Unix time. It is 0 if none did.
	Seen int64
	// Writer is the field manager that last changed the object, except the resource-manager. Changes of the status do not
	// count.
	Writer string
	// Deleting is the deletion timestamp of the object. It is zero if the object is not being deleted.
	Deleting time.Time
	// Finalizers is set if the object has finalizers, which delay its deletion.
	Finalizers bool
	// FinalizeAfter is the annotation with the time after which the finalizers of the object are removed.
	FinalizeAfter string
	// Directive contains the options in the annotations of the live object.
	Directive applyoptions.Options
	// Generation is the generation of the object.
	Generation int64
	// Replicas is whether a workload has 0 replicas.
	Replicas Replicas
	// Finished is set if the object is a Job that has finished and is deleted after its TTL.
	Finished bool
	// Examined is set if Health is that of the current state of the object, or if only its metadata is required.
	Examined bool
	// Health is the health of the object. It is nil if the object is healthy and not being rolled out.
	Health *health.Verdict
	// borrowed is set if Health was copied from an earlier observation.
	borrowed bool
	// counted is set if the number of Pods of a Deployment has reached the wanted number since its spec was changed.
	counted *health.PodCount
	// Exempt is set if the object requests to be excluded from health checks.
	Exempt bool
	// GarbageCollectable is set if the garbage collector deletes the object when no object refers to it.
	GarbageCollectable bool
}

// Observe returns the observation of the metadata of an object. The policy determines the managers whose fields are
// taken over.
func Observe(meta *metav1.PartialObjectMetadata, policy fieldowner.Policy) Observation {
	observation := Observation{
		UID:                meta.UID,
		ResourceVersion:    meta.ResourceVersion,
		Origin:             meta.Annotations[resourcesv1alpha1.AnnotationOrigin],
		ManagedBy:          meta.Labels[resourcesv1alpha1.LabelManagedBy],
		Labels:             keysOf(meta.Labels),
		Annotations:        keysOf(meta.Annotations),
		Writer:             lastWriter(meta.ManagedFields),
		Finalizers:         len(meta.Finalizers) > 0,
		FinalizeAfter:      meta.Annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter],
		Directive:          applyoptions.Of(meta.Annotations),
		Generation:         meta.Generation,
		Exempt:             resourcesv1alpha1.Truthy(meta.Annotations[resourcesv1alpha1.AnnotationSkipHealthCheck]),
		GarbageCollectable: resourcesv1alpha1.Truthy(meta.Labels[resourcesv1alpha1.LabelGarbageCollectableReference]),
	}
	if meta.DeletionTimestamp != nil {
		observation.Deleting = meta.DeletionTimestamp.Time
	}
	if owned := fieldowner.Owned(meta.ManagedFields); owned != nil {
		// Times are omitted, because an apply without effect may not change them.
		observation.OwnedDigest = object.Digest([]byte(owned.APIVersion), sortedFields(owned))
		observation.Owned = fieldowner.FieldFilterOf(owned.FieldsV1.GetRawBytes())
	}
	observation.Unlabelled = fieldowner.HasTemplateWithout(meta.ManagedFields, resourcesv1alpha1.LabelManagedBy)
	observation.FormerApplier = policy.FormerApplier(meta.ManagedFields)
	// Fields that cannot be read are not taken over.
	candidates, err := fieldowner.TakeOverCandidates(meta.ManagedFields, policy, Preserved(meta))
	if err == nil && !observation.Directive.Merge {
		observation.TakeOverCandidates = candidates
	}
	return observation
}

// SentWhole reports whether the object was sent by updates, because it cannot be applied: it has the origin of a
// ManagedResource, but the resource-manager owns no fields of it.
func (o *Observation) SentWhole() bool { return o.OwnedDigest == "" && o.Origin != "" }

// AppliedDigest returns a text that changes when another client changes what the resource-manager applied: the digest
// of the owned fields, or the generation of an object that was sent by updates. It is empty if neither exists.
func (o *Observation) AppliedDigest() string {
	if o.SentWhole() && o.Generation > 0 {
		return "generation-" + strconv.FormatInt(o.Generation, 10)
	}
	return o.OwnedDigest
}

// sortedFields returns the fields of an entry in an order that does not depend on how the object was read. The API
// server sorts them by value. Decoding of unstructured objects, which are used for versions that client-go does not
// know, sorts them by text.
func sortedFields(entry *metav1.ManagedFieldsEntry) []byte {
	raw := entry.FieldsV1.GetRawBytes()
	gv, err := schema.ParseGroupVersion(entry.APIVersion)
	if err != nil || scheme.Scheme.IsVersionRegistered(gv) {
		return raw
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return raw
	}
	sorted, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return sorted
}

// Agrees reports whether a decision about the object is the same for another observation. It ignores fields that change
// with every write, such as one of the status, and the health of the object.
func (o *Observation) Agrees(other *Observation) bool {
	a, b := *o, *other
	if a.Replicas.Zero() != b.Replicas.Zero() {
		return false
	}
	if (a.TakeOverCandidates == nil) != (b.TakeOverCandidates == nil) ||
		a.TakeOverCandidates != nil && !a.TakeOverCandidates.Equals(b.TakeOverCandidates) {
		return false
	}
	if a.OwnedDigest == "" && a.Generation != b.Generation {
		return false // without owned fields, only the generation shows changes
	}
	a.ResourceVersion, a.Writer, a.TakeOverCandidates, a.Seen = b.ResourceVersion, b.Writer, b.TakeOverCandidates, b.Seen
	a.Generation, a.Examined, a.Health = b.Generation, b.Examined, b.Health
	a.borrowed, a.counted, a.Replicas = b.borrowed, b.counted, b.Replicas
	return a == b
}

// sameHealth reports whether two observations of an object have the same health.
func (o *Observation) sameHealth(other *Observation) bool {
	return o.Examined == other.Examined && o.Exempt == other.Exempt && o.Origin == other.Origin && o.verdict() == other.verdict()
}

// verdict returns the health of the object.
func (o *Observation) verdict() health.Verdict {
	if o.Health == nil {
		return health.Verdict{}
	}
	return *o.Health
}

// Preserved returns the fields that a live object requests to preserve.
func Preserved(meta *metav1.PartialObjectMetadata) []fieldowner.Pattern {
	if !resourcesv1alpha1.Truthy(meta.Annotations[resourcesv1alpha1.AnnotationPreserveResources]) {
		return nil
	}
	return fieldowner.ComputeResources()
}

// lastWriter returns the manager with the latest entry, except the resource-manager. An entry of a subresource counts
// only if it contains other fields than the status, and if no other manager has written since the last apply: such
// entries are renewed with every change of the status.
func lastWriter(entries []metav1.ManagedFieldsEntry) string {
	var applied, last, through metav1.ManagedFieldsEntry
	for _, entry := range entries {
		switch {
		case entry.Time == nil || entry.Manager == fieldowner.Preserver:
		case entry.Manager == resourcesv1alpha1.FieldManager:
			applied = entry
		case entry.Subresource == "":
			last = later(last, entry)
		case entry.FieldsV1 != nil && !strings.HasPrefix(string(entry.FieldsV1.GetRawBytes()), `{"f:status":`):
			through = later(through, entry)
		}
	}
	if through.Manager != "" && (last.Manager == "" || applied.Time != nil && last.Time.Before(applied.Time) && !through.Time.Before(applied.Time)) {
		return through.Manager
	}
	return last.Manager
}

// later returns the entry that was written later.
func later(a, b metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	if b.Time.Before(a.Time) {
		return a
	}
	return b
}

// Keys are the sorted keys of labels or annotations.
type Keys string

// keysOf returns the keys of a map.
func keysOf(values map[string]string) Keys {
	return Keys(strings.Join(slices.Sorted(maps.Keys(values)), keySeparator))
}

const keySeparator = "\n" // not allowed in keys

// All returns the keys.
func (k Keys) All() []string {
	if k == "" {
		return nil
	}
	return strings.Split(string(k), keySeparator)
}

// interned returns an equal string that shares its memory with all equal strings.
func interned(text string) string { return unique.Make(text).Value() }
