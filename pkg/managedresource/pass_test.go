package managedresource

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestRemainingShrinksOnlyByWhatIsGone(t *testing.T) {
	applied := wanted("applied", actionApply, nil)
	applied.observation.OwnedDigest = "new"
	created := wanted("created", actionCreate, nil)
	recorded := inventoryWith(
		entry(configMapKind, "a", "applied", "old"), entry(configMapKind, "a", "created", ""),
		entry(configMapKind, "a", "skipped", "old"), entry(configMapKind, "a", "failed", "old"),
		entry(configMapKind, "a", "untouched", "old"),
		entry(configMapKind, "a", "deleted", "old"), entry(configMapKind, "a", "gone", "old"),
		entry(configMapKind, "a", "released", "old"), entry(configMapKind, "a", "deleting", "old"),
		entry(configMapKind, "a", "undeletable", "old"), entry(configMapKind, "a", "conflicting", "old"),
	)
	done := changeSet{changes: []change{
		applied, created, wanted("skipped", actionSkip, nil), wanted("failed", actionApply, errTimeout),
		wanted("conflicting", actionConflict, errTimeout),
		unwanted("deleted", actionDelete, nil), unwanted("gone", actionForget, nil), unwanted("released", actionRelease, nil),
		unwanted("deleting", actionWait, nil), unwanted("undeletable", actionDelete, errTimeout),
	}}
	before := len(recorded)
	digests := map[string]string{}
	for key, entry := range done.remaining(recorded) {
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
		t.Errorf("%v still exist", digests)
	}
	if len(recorded) != before {
		t.Error("the recorded inventory was changed")
	}
}

func TestNothingIsUnwantedWhileAProblemStands(t *testing.T) {
	p := &pass{mr: &resourcesv1alpha1.ManagedResource{}}
	in := input{
		recorded:  inventoryWith(entry(configMapKind, "a", "kept", ""), entry(configMapKind, "a", "left", "")),
		manifests: []object.Manifest{manifestOf(configMapKind.GroupKind().WithVersion("v2"), "a", "kept")},
	}
	if got := entryNames(p.unwanted(in).references()); !slices.Equal(got, []string{"v1/ConfigMap/a/left"}) {
		t.Errorf("unwanted are %v, want only the object that has no manifest in any version", got)
	}
	if len(in.recorded) != 2 {
		t.Error("the recorded inventory was changed")
	}
	in.problems = []problem{badManifest("x")}
	if got := p.unwanted(in); len(got) != 0 {
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
	if relevantChange().Update(event.UpdateEvent{ObjectOld: &corev1.Secret{}, ObjectNew: &corev1.Secret{}}) {
		t.Error("an object that is not a ManagedResource counts as having become unhealthy")
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if !relevantChange().Create(event.CreateEvent{Object: mr}) || !relevantChange().Delete(event.DeleteEvent{Object: mr}) {
		t.Error("creation and deletion must always be relevant")
	}
}

// TestRelevantChangeOfHealth checks that objects that become unhealthy trigger a reconcile, because they might have to be
// corrected.
func TestRelevantChangeOfHealth(t *testing.T) {
	const isTrue, isFalse, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	healthy := func(status resourcesv1alpha1.ConditionStatus, reason string) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{}
		if reason != "" {
			mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesHealthy, Status: status, Reason: reason}}
		}
		return mr
	}
	for name, test := range map[string]struct {
		before, after *resourcesv1alpha1.ManagedResource
		want          bool
	}{
		"unhealthy":            {healthy(isTrue, "ResourcesHealthy"), healthy(isFalse, "PodUnhealthy"), true},
		"missing":              {healthy(isTrue, "ResourcesHealthy"), healthy(isFalse, "PodMissing"), true},
		"unhealthy at first":   {healthy("", ""), healthy(isFalse, "PodUnhealthy"), true},
		"unhealthy as before":  {healthy(isFalse, "PodMissing"), healthy(isFalse, "PodUnhealthy"), false},
		"unhealthy, as looked": {healthy(unknown, "ChecksPending"), healthy(isFalse, "PodUnhealthy"), false},
		"to be looked at":      {healthy(isTrue, "ResourcesHealthy"), healthy(unknown, "ChecksPending"), false},
		"healthy":              {healthy(isFalse, "PodUnhealthy"), healthy(isTrue, "ResourcesHealthy"), false},
		"being deleted":        {healthy(isTrue, "ResourcesHealthy"), healthy(isFalse, "DeletionPending"), false},
		"ignored no longer":    {healthy(isTrue, "ManagedResourceIgnored"), healthy(isFalse, "PodUnhealthy"), true},
	} {
		if got := relevantChange().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: relevant is %v", name, got)
		}
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
