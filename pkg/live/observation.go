// Package live shows the objects in the target cluster: it watches them, kind by kind, by their metadata or, for health checks, as a whole,
// and reduces what it sees to what decisions need.
package live

import (
	"encoding/json"
	"maps"
	"slices"
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

// Presence says what is known of an object.
type Presence int

const (
	// Unknown means that the object could not be read; see State.Err.
	Unknown Presence = iota
	// Absent means that there is no such object.
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

// Observation is an object reduced to what decisions need. A View holds it in a third of this memory.
type Observation struct {
	UID             types.UID
	ResourceVersion string
	// Origin is the origin annotation: the ManagedResource that owns the object.
	Origin string
	// ManagedBy is the managed-by label.
	ManagedBy string
	// Labels and Annotations are the keys that the object has.
	Labels, Annotations Keys
	// OwnedDigest reports whether the fields that the resource-manager owns changed hands; empty if it owns none.
	OwnedDigest string
	// Owned filters out fields that the resource-manager certainly does not own.
	Owned fieldowner.FieldFilter
	// Unlabelled is set if the object has a pod template without the managed-by label.
	Unlabelled bool
	// TakeOverCandidates are fields of others that the resource-manager takes over; nil if there are none.
	TakeOverCandidates *fieldpath.Set
	// FormerApplier is the field manager that applied the object for a ManagedResource before the resource-manager did, unless it is one of
	// those that the policy names; empty if there is none.
	FormerApplier string
	// Seen is when a watch showed the object like this for the first time, in nanoseconds of Unix time; 0 if none did.
	Seen int64
	// Writer is the field manager that changed the object last, not counting the resource-manager and changes of status.
	Writer string
	// Deleting is when the object's deletion was asked for; zero if it was not.
	Deleting time.Time
	// Finalizers is set if something holds up the object's deletion.
	Finalizers bool
	// FinalizeAfter is the annotation that says when its finalizers are removed.
	FinalizeAfter string
	// Directive is how the live object wants to be handled.
	Directive applyoptions.Options
	// Generation counts the changes of the object's spec.
	Generation int64
	// Replicas says whether a workload has 0 replicas.
	Replicas Replicas
	// Examined is set if Health speaks of the object as it is, or if its metadata is all there is to know.
	Examined bool
	// Health is how the object is; nil if it is healthy and not rolling out.
	Health *health.Verdict
	// borrowed is set if Health was taken over from an earlier state.
	borrowed bool
	// counted is set if a Deployment's Pods have been as many as wanted since its spec was changed.
	counted *health.PodCount
	// Exempt is set if the object asks not to be checked.
	Exempt bool
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
		// Times are left out: an apply without effect may not move them.
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

// sortedFields returns the fields of an entry in an order that does not depend on how the object was read: the API server
// sorts them by value, and decoding an unstructured object, as those of versions that client-go does not know, by text.
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

// Agrees reports whether a decision about the object would be the same after another observation: it leaves out what changes
// with every write, such as one of the status, and how the object is.
func (o *Observation) Agrees(other *Observation) bool {
	a, b := *o, *other
	if a.Replicas.Zero() != b.Replicas.Zero() {
		return false
	}
	if (a.TakeOverCandidates == nil) != (b.TakeOverCandidates == nil) || a.TakeOverCandidates != nil && !a.TakeOverCandidates.Equals(b.TakeOverCandidates) {
		return false
	}
	a.ResourceVersion, a.Writer, a.TakeOverCandidates, a.Seen = b.ResourceVersion, b.Writer, b.TakeOverCandidates, b.Seen
	a.Generation, a.Examined, a.Health = b.Generation, b.Examined, b.Health
	a.borrowed, a.counted, a.Replicas = b.borrowed, b.counted, b.Replicas
	return a == b
}

// sameHealth reports whether an object has the same health in another observation.
func (o *Observation) sameHealth(other *Observation) bool {
	return o.Examined == other.Examined && o.Exempt == other.Exempt && o.Origin == other.Origin && o.verdict() == other.verdict()
}

// verdict returns how the object is.
func (o *Observation) verdict() health.Verdict {
	if o.Health == nil {
		return health.Verdict{}
	}
	return *o.Health
}

// Preserved returns the fields that a live object asks to be left as they are.
func Preserved(meta *metav1.PartialObjectMetadata) []fieldowner.Pattern {
	if !resourcesv1alpha1.Truthy(meta.Annotations[resourcesv1alpha1.AnnotationPreserveResources]) {
		return nil
	}
	return fieldowner.ComputeResources()
}

// lastWriter returns the manager, other than the resource-manager, whose entry is the youngest. Entries of subresources do
// not count: they are about status and scale.
func lastWriter(entries []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range entries {
		foreign := entry.Manager != resourcesv1alpha1.FieldManager && entry.Manager != fieldowner.Preserver
		if foreign && entry.Subresource == "" && entry.Time != nil && !entry.Time.Before(last.Time) {
			last = entry
		}
	}
	return last.Manager
}

// Keys are the keys of labels or annotations, sorted.
type Keys string

// keysOf returns the keys of a map.
func keysOf(values map[string]string) Keys {
	return Keys(strings.Join(slices.Sorted(maps.Keys(values)), keySeparator))
}

const keySeparator = "\n" // in no key of a label or annotation

// All returns the keys.
func (k Keys) All() []string {
	if k == "" {
		return nil
	}
	return strings.Split(string(k), keySeparator)
}

// shared returns the string that all equal ones share the memory of.
func shared(text string) string { return unique.Make(text).Value() }
