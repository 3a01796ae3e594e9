package managedresource

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestRemainingShrinksOnlyByWhatIsGone(t *testing.T) {
	applied := wanted("applied", actionApply, nil)
	applied.observation.OwnedDigest = "new"
	created := wanted("created", actionCreate, nil)
	p := &pass{
		recorded: inventoryWith(
			entry(configMapKind, "a", "applied", "old"), entry(configMapKind, "a", "created", ""),
			entry(configMapKind, "a", "skipped", "old"), entry(configMapKind, "a", "failed", "old"),
			entry(configMapKind, "a", "untouched", "old"),
			entry(configMapKind, "a", "deleted", "old"), entry(configMapKind, "a", "gone", "old"),
			entry(configMapKind, "a", "released", "old"), entry(configMapKind, "a", "deleting", "old"),
			entry(configMapKind, "a", "undeletable", "old"), entry(configMapKind, "a", "conflicting", "old"),
		),
		changes: []change{
			applied, created, wanted("skipped", actionSkip, nil), wanted("failed", actionApply, errTimeout),
			wanted("conflicting", actionConflict, errTimeout),
			unwanted("deleted", actionDelete, nil), unwanted("gone", actionForget, nil), unwanted("released", actionRelease, nil),
			unwanted("deleting", actionWait, nil), unwanted("undeletable", actionDelete, errTimeout),
		},
	}
	before := len(p.recorded)
	digests := map[string]string{}
	for key, entry := range p.remaining() {
		digests[key.Name] = entry.Digest
	}
	for name, want := range map[string]string{
		"applied": "sent.new", "created": "", "skipped": "old", "failed": "old", "untouched": "old",
		"deleting": "old", "undeletable": "old", "conflicting": "old",
	} {
		if got, found := digests[name]; !found || got != want {
			t.Errorf("%s: digest %q, found %v; want %q", name, got, found, want)
		}
		delete(digests, name)
	}
	if len(digests) > 0 {
		t.Errorf("%v are still there", digests)
	}
	if len(p.recorded) != before {
		t.Error("the recorded inventory was changed")
	}
}

func TestNothingIsUnwantedWhileAProblemStands(t *testing.T) {
	p := &pass{
		mr:        &resourcesv1alpha1.ManagedResource{},
		recorded:  inventoryWith(entry(configMapKind, "a", "kept", ""), entry(configMapKind, "a", "left", "")),
		manifests: []object.Manifest{manifestOf(configMapKind.GroupKind().WithVersion("v2"), "a", "kept")},
	}
	if got := entryNames(p.unwanted().references()); !slices.Equal(got, []string{"v1/ConfigMap/a/left"}) {
		t.Errorf("unwanted are %v, want the object that is in no manifest, in whatever version", got)
	}
	if len(p.recorded) != 2 {
		t.Error("the recorded inventory was changed")
	}
	p.problems = []problem{badManifest("x")}
	if got := p.unwanted(); len(got) != 0 {
		t.Errorf("unwanted are %v while a manifest cannot be read", got)
	}
}

func TestRelevantChange(t *testing.T) {
	const ignore, operation = "resources.gardener.cloud/ignore", "gardener.cloud/operation"
	now := metav1.NewTime(time.Unix(0, 0))
	type meta = metav1.ObjectMeta
	for name, test := range map[string]struct {
		before, after meta
		want          bool
	}{
		"nothing":                     {meta{}, meta{ResourceVersion: "2"}, false},
		"the spec":                    {meta{Generation: 1}, meta{Generation: 2}, true},
		"the deletion":                {meta{}, meta{DeletionTimestamp: &now}, true},
		"deleting as before":          {meta{DeletionTimestamp: &now}, meta{DeletionTimestamp: &now}, false},
		"a label":                     {meta{}, meta{Labels: map[string]string{"a": "b"}}, false},
		"some annotation":             {meta{}, meta{Annotations: map[string]string{"a": "b"}}, false},
		"ignored":                     {meta{}, meta{Annotations: map[string]string{ignore: "true"}}, true},
		"no longer ignored":           {meta{Annotations: map[string]string{ignore: "true"}}, meta{}, true},
		"to reconcile":                {meta{}, meta{Annotations: map[string]string{operation: "reconcile"}}, true},
		"reconciled":                  {meta{Annotations: map[string]string{operation: "reconcile"}}, meta{}, false},
		"to restore":                  {meta{}, meta{Annotations: map[string]string{operation: "restore"}}, true},
		"from waiting to reconcile":   {meta{Annotations: map[string]string{operation: "wait-for-state"}}, meta{Annotations: map[string]string{operation: "reconcile"}}, true},
		"from reconcile to waiting":   {meta{Annotations: map[string]string{operation: "reconcile"}}, meta{Annotations: map[string]string{operation: "wait-for-state"}}, true},
		"no longer waiting":           {meta{Annotations: map[string]string{operation: "wait-for-state"}}, meta{}, true},
		"a finalizer came":            {meta{}, meta{Finalizers: []string{blue}}, false},
		"a finalizer went":            {meta{Finalizers: []string{blue, ownFinalizer}}, meta{Finalizers: []string{ownFinalizer}}, true},
		"finalizers in another order": {meta{Finalizers: []string{blue, ownFinalizer}}, meta{Finalizers: []string{ownFinalizer, blue}}, false},
		"one went while another came": {meta{Finalizers: []string{blue}}, meta{Finalizers: []string{ownFinalizer}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := relevantChange().Update(event.UpdateEvent{
				ObjectOld: &resourcesv1alpha1.ManagedResource{ObjectMeta: test.before},
				ObjectNew: &resourcesv1alpha1.ManagedResource{ObjectMeta: test.after},
			})
			if got != test.want {
				t.Errorf("relevant is %v, want %v", got, test.want)
			}
		})
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if !relevantChange().Create(event.CreateEvent{Object: mr}) || !relevantChange().Delete(event.DeleteEvent{Object: mr}) {
		t.Error("coming and going must always be relevant")
	}
}

func TestSecretNames(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{Spec: resourcesv1alpha1.ManagedResourceSpec{
		SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "b"}, {Name: "a"}},
	}}
	if got := secretNames(mr); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("got %v, want both names", got)
	}
	if got := secretNames(&resourcesv1alpha1.ManagedResource{}); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}
