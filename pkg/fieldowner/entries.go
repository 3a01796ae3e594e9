// Package fieldowner reads and rewrites the field ownership of an object (metadata.managedFields), which determines the
// effect of a server-side apply. It uses only metadata.
package fieldowner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Preserver is the field manager of fields that are preserved in live objects although they are no longer in a
// manifest.
const Preserver = "resource-manager-preserved"

// Owned returns the entry of our applies. It is nil if there is none. The API server writes the fields of an entry in a
// fixed order, and removes a field as soon as another manager changes it.
func Owned(entries []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	if i := own(entries); i >= 0 {
		return &entries[i]
	}
	return nil
}

// Owns reports whether our applies own a field outside of lists.
func Owns(entries []metav1.ManagedFieldsEntry, field Pattern) bool {
	entry := Owned(entries)
	return entry != nil && owns(entry.FieldsV1.GetRawBytes(), field)
}

// own returns the index of the entry of our applies, or -1.
func own(entries []metav1.ManagedFieldsEntry) int {
	return slices.IndexFunc(entries, isOwn)
}

// isOwn reports whether an entry is the one of our applies.
func isOwn(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == resourcesv1alpha1.FieldManager && entry.Subresource == "" && entry.FieldsV1 != nil &&
		entry.Operation == metav1.ManagedFieldsOperationApply
}

// PatchFor returns the JSON patch that replaces the managedFields of an object and removes the fields of JSON pointers.
// The API server returns a conflict if the object no longer has the given resourceVersion.
func PatchFor(entries []metav1.ManagedFieldsEntry, resourceVersion string, removed ...string) ([]byte, error) {
	operations := []map[string]any{
		{"op": "add", "path": "/metadata/managedFields", "value": entries}, // "add" also works if there are none
		// "replace", because the API server reports a failed "test" as Invalid instead of Conflict.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion},
	}
	for _, pointer := range removed {
		operations = append(operations, map[string]any{"op": "remove", "path": pointer})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode managedFields: %w", err)
	}
	return patch, nil
}

// Fields returns the fields that the manager of an entry owns. It returns an error for fields that are nested too deep.
func Fields(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) { return fieldsOf(entry) }

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	raw := entry.FieldsV1.GetRawBytes()
	if tooDeep(raw) {
		return nil, fmt.Errorf("read the fields of manager %q: they are nested deeper than %d levels", entry.Manager, maxDepth)
	}
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("read the fields of manager %q: %w", entry.Manager, err)
	}
	return set, nil
}

// tooDeep reports whether fields are nested so deep that reading them could exhaust the stack. Braces in the keys of
// list items are assumed to be balanced.
func tooDeep(fields []byte) bool {
	depth := 0
	for _, char := range fields {
		switch char {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth > maxDepth {
			return true
		}
	}
	return false
}

func withFields(entry metav1.ManagedFieldsEntry, set *fieldpath.Set) (metav1.ManagedFieldsEntry, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return entry, fmt.Errorf("write the fields of manager %q: %w", entry.Manager, err)
	}
	entry.FieldsV1 = &metav1.FieldsV1{}
	entry.FieldsV1.SetRawBytes(raw)
	return entry, nil
}

// split divides a set into the paths that match one of the patterns, and the others.
func split(set *fieldpath.Set, patterns []Pattern) (matching, others *fieldpath.Set) {
	matching, others = &fieldpath.Set{}, &fieldpath.Set{}
	for path := range set.All() {
		part := others
		if slices.ContainsFunc(patterns, func(p Pattern) bool { return p.matches(path) }) {
			part = matching
		}
		part.Insert(path.Copy())
	}
	return matching, others
}

// HasTemplateWithout reports whether managers own parts of the pod template of an object, and none of them owns a label
// with the given key in it.
func HasTemplateWithout(entries []metav1.ManagedFieldsEntry, label string) bool {
	found := false
	for _, entry := range entries {
		if entry.Subresource != "" || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:template":`)) {
			continue
		}
		labelled := false
		walk(&scanner{rest: string(entry.FieldsV1.GetRawBytes())}, nil, func(path Pattern, _ bool) {
			for _, template := range templates {
				if len(path) < len(template) || !slices.Equal(path[:len(template)], template) {
					continue
				}
				below := path[len(template):]
				found = found || len(below) == 0
				labelled = labelled || len(below) == 3 && below[0] == "metadata" && below[1] == "labels" && below[2] == label
			}
		})
		if labelled {
			return false
		}
	}
	return found
}
