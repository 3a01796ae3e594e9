package live

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

const fields = `{"f:data":{"f:a":{}}}`

func applied(change func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: "resource-manager", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
		Time: &metav1.Time{Time: time.Unix(1, 0)}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
	if change != nil {
		change(&entry)
	}
	return entry
}

func TestObserve(t *testing.T) {
	now := metav1.Now()
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: "u", ResourceVersion: "7", DeletionTimestamp: &now,
		Labels: map[string]string{"resources.gardener.cloud/managed-by": "gardener"},
		Annotations: map[string]string{
			"resources.gardener.cloud/origin": "garden/shop", "resources.gardener.cloud/keep-object": "true",
		},
		ManagedFields: []metav1.ManagedFieldsEntry{applied(nil)},
	}}
	want := Observation{
		UID: "u", ResourceVersion: "7", Origin: "garden/shop", ManagedBy: "gardener",
		OwnedDigest: ownedDigest(meta.ManagedFields), Owned: fieldowner.FieldFilterOf([]byte(fields)), Deleting: now.Time, Directive: applyoptions.Options{KeepOnPrune: true, KeepOnDelete: true},
		Labels:      "resources.gardener.cloud/managed-by",
		Annotations: "resources.gardener.cloud/keep-object\nresources.gardener.cloud/origin",
	}
	if got := Observe(meta, fieldowner.Policy{}); !reflect.DeepEqual(got, want) || got.OwnedDigest == "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Observe(&metav1.PartialObjectMetadata{}, fieldowner.Policy{}); !reflect.DeepEqual(got, Observation{}) {
		t.Errorf("for an object without metadata, got %+v", got)
	}
}

func TestObserveKeep(t *testing.T) {
	for value, want := range map[string]bool{
		"true": true, "1": true, "T": true, "TRUE": true, "false": false, "0": false, "": false, "yes": false, "true!": false,
	} {
		meta := &metav1.PartialObjectMetadata{}
		meta.Annotations = map[string]string{"resources.gardener.cloud/keep-object": value}
		if got := Observe(meta, fieldowner.Policy{}).Directive.KeepOnPrune; got != want {
			t.Errorf("keep-object=%q: %v, want %v", value, got, want)
		}
	}
}

func TestOwnedDigestSeesOnlyOurOwnFields(t *testing.T) {
	base := ownedDigest([]metav1.ManagedFieldsEntry{applied(nil)})
	if base == "" {
		t.Fatal("our own entry has no digest")
	}
	type entry = metav1.ManagedFieldsEntry
	with := func(change func(*entry)) []entry { return []entry{applied(change)} }
	kubectl := func(e *entry) { e.Manager, e.FieldsV1 = "kubectl", metav1.NewFieldsV1(`{"f:x":{}}`) }

	for name, entries := range map[string][]entry{
		"another time":          with(func(e *entry) { e.Time = &metav1.Time{Time: time.Unix(2, 0)} }),
		"no time":               with(func(e *entry) { e.Time = nil }),
		"another manager more":  {applied(kubectl), applied(nil), applied(kubectl)},
		"our updates of status": {applied(func(e *entry) { e.Subresource = "status" }), applied(nil)},
		"our plain updates":     {applied(func(e *entry) { e.Operation = metav1.ManagedFieldsOperationUpdate }), applied(nil)},
	} {
		if got := ownedDigest(entries); got != base {
			t.Errorf("%s: the digest is %q, want %q, unchanged", name, got, base)
		}
	}
	for name, entries := range map[string][]entry{
		"another field":   with(func(e *entry) { e.FieldsV1 = metav1.NewFieldsV1(`{"f:data":{"f:b":{}}}`) }),
		"a field less":    with(func(e *entry) { e.FieldsV1 = metav1.NewFieldsV1(`{"f:data":{}}`) }),
		"no field":        with(func(e *entry) { e.FieldsV1 = metav1.NewFieldsV1(`{}`) }),
		"another version": with(func(e *entry) { e.APIVersion = "v2" }),
	} {
		if got := ownedDigest(entries); got == base || got == "" {
			t.Errorf("%s: the digest is %q, want a digest other than %q", name, got, base)
		}
	}
	for name, entries := range map[string][]entry{
		"nothing":         nil,
		"another manager": with(kubectl),
		"a similar name":  with(func(e *entry) { e.Manager = "resource-manager-2" }),
		"an update":       with(func(e *entry) { e.Operation = metav1.ManagedFieldsOperationUpdate }),
		"the status":      with(func(e *entry) { e.Subresource = "status" }),
		"fields missing":  with(func(e *entry) { e.FieldsV1 = nil }),
	} {
		if got := ownedDigest(entries); got != "" {
			t.Errorf("%s: the digest is %q, want none", name, got)
		}
	}
}

func ownedDigest(entries []metav1.ManagedFieldsEntry) string {
	meta := &metav1.PartialObjectMetadata{}
	meta.ManagedFields = entries
	return Observe(meta, fieldowner.Policy{}).OwnedDigest
}

// API servers other than kube-apiserver sort the fields of their kinds by value, and unstructured objects are decoded to maps.
func TestOwnedDigestIsTheSameOfUnstructuredObjects(t *testing.T) {
	const fields = `{"f:spec":{".":{},"f:ports":{"k:{\"port\":9}":{"f:a<b":{}},"k:{\"port\":80}":{},"k:{\"port\":8080}":{}}}}`
	entry := applied(func(e *metav1.ManagedFieldsEntry) {
		e.APIVersion, e.FieldsV1 = "aggregated.example.org/v1", metav1.NewFieldsV1(fields)
	})
	typed := &metav1.PartialObjectMetadata{}
	typed.ManagedFields = []metav1.ManagedFieldsEntry{entry}
	content, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	untyped := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &untyped.Object); err != nil {
		t.Fatal(err)
	}
	metadata, err := metadataOf(untyped)
	if err != nil {
		t.Fatal(err)
	}
	a, b := Observe(typed, fieldowner.Policy{}), Observe(metadata, fieldowner.Policy{})
	if a.OwnedDigest == "" || a.OwnedDigest != b.OwnedDigest || a.Owned != b.Owned {
		t.Errorf("from metadata %q, from the whole object %q", a.OwnedDigest, b.OwnedDigest)
	}
}

// TestAgreesAboutFieldsOfOthers checks that the fields of other managers are relevant for a decision.
func TestAgreesAboutFieldsOfOthers(t *testing.T) {
	none, one := Observation{}, Observation{TakeOverCandidates: fieldpath.NewSet(fieldpath.MakePathOrDie("data", "a"))}
	same, other := Observation{TakeOverCandidates: fieldpath.NewSet(fieldpath.MakePathOrDie("data", "a"))}, Observation{TakeOverCandidates: fieldpath.NewSet(fieldpath.MakePathOrDie("data", "b"))}
	if !one.Agrees(&same) || one.Agrees(&other) || one.Agrees(&none) || none.Agrees(&one) {
		t.Error("the observations agree, or differ for another reason")
	}
}

// TestPreserved checks that an object keeps its requests and limits if its annotations request that.
func TestPreserved(t *testing.T) {
	meta := &metav1.PartialObjectMetadata{}
	if got := Preserved(meta); got != nil {
		t.Errorf("got %v", got)
	}
	meta.Annotations = map[string]string{"resources.gardener.cloud/preserve-resources": "true"}
	if got := Preserved(meta); len(got) == 0 {
		t.Error("nothing is preserved")
	}
}
