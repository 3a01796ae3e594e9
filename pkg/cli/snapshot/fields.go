package snapshot

import (
	"bytes"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
)

// maxFields is the maximum number of fields to name for a manager.
const maxFields = 5

// Taker is a field manager that changed fields of an object after the resource-manager applied it.
type Taker struct {
	Manager string    `json:"manager"`
	When    time.Time `json:"when"`
	// Fields are some of its fields.
	Fields []string `json:"fields"`
}

// Changed reports whether an object differs from what was applied, by the digest in the inventory. It returns false
// without a digest.
func Changed(o *Object, entry resourcesv1alpha1.ObjectReference) bool {
	_, owned, applied := strings.Cut(entry.Digest, ".")
	if o.Presence != live.Present || !applied {
		return false
	}
	observation := live.Observe(&metav1.PartialObjectMetadata{ObjectMeta: o.Meta}, fieldowner.DefaultPolicy())
	return observation.AppliedDigest() != owned || observation.TakeOverCandidates != nil
}

// Takers returns the field managers that changed an object after it was applied.
func Takers(o *Object, entry resourcesv1alpha1.ObjectReference) []Taker {
	if !Changed(o, entry) {
		return nil
	}
	var since time.Time
	if ours := fieldowner.Owned(o.Meta.ManagedFields); ours != nil && ours.Time != nil {
		since = ours.Time.Time
	}
	var takers []Taker
	for _, fields := range o.Meta.ManagedFields {
		foreign := fields.Manager != resourcesv1alpha1.FieldManager && fields.Manager != fieldowner.Preserver && fields.Subresource == ""
		if foreign && fields.Time != nil && !fields.Time.Time.Before(since) {
			takers = append(takers, Taker{fields.Manager, fields.Time.Time, fieldsOf(fields)})
		}
	}
	slices.SortFunc(takers, func(a, b Taker) int { return a.When.Compare(b.When) })
	return takers
}

// fieldsOf returns paths of the fields of a manager, such as .data.BANNER.
func fieldsOf(entry metav1.ManagedFieldsEntry) []string {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return nil
	}
	var paths []string
	set.Leaves().Iterate(func(path fieldpath.Path) {
		paths = append(paths, strings.TrimPrefix(path.String(), "."))
	})
	slices.Sort(paths)
	if len(paths) > maxFields {
		paths = append(paths[:maxFields], "…")
	}
	return paths
}
