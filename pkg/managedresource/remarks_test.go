package managedresource

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestPlanOfFinishedJobs: a Job that has finished and was deleted by its TTL is created again only if its manifest
// changes.
func TestPlanOfFinishedJobs(t *testing.T) {
	manifest := manifestOf(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "a", "init")
	manifest.Digest = "sent"
	finished := live.Observation{UID: "u", Origin: "garden/shop", ManagedBy: "gardener", OwnedDigest: "owned", Finished: true}
	deleting := finished
	deleting.Deleting = time.Unix(1, 0)
	for name, test := range map[string]struct {
		state      live.State
		recorded   resourcesv1alpha1.ObjectReference
		unrecorded bool
		want       action
		completed  bool
	}{
		"it exists":                   {state: present(finished), recorded: resourcesv1alpha1.ObjectReference{Digest: "sent.owned"}, want: actionSkip, completed: true},
		"it is being deleted":         {state: present(deleting), recorded: resourcesv1alpha1.ObjectReference{Digest: "sent.owned"}, want: actionSkip, completed: true},
		"another manifest, deleting":  {state: present(deleting), recorded: resourcesv1alpha1.ObjectReference{Digest: "old.owned"}, want: actionWait, completed: true},
		"gone, recorded":              {state: live.State{Presence: live.Absent}, recorded: resourcesv1alpha1.ObjectReference{Digest: "sent.owned", Completed: true}, want: actionSkip, completed: true},
		"gone, seen":                  {state: live.State{Presence: live.Absent, Finished: true}, recorded: resourcesv1alpha1.ObjectReference{Digest: "sent.owned"}, want: actionSkip, completed: true},
		"gone, another manifest":      {state: live.State{Presence: live.Absent, Finished: true}, recorded: resourcesv1alpha1.ObjectReference{Digest: "old.owned", Completed: true}, want: actionCreate},
		"gone, written, not recorded": {state: live.State{Presence: live.Absent}, recorded: resourcesv1alpha1.ObjectReference{Digest: "sent.owned", Completed: true}, unrecorded: true, want: actionCreate},
		"gone before it finished":     {state: live.State{Presence: live.Absent}, recorded: resourcesv1alpha1.ObjectReference{Digest: "sent.owned"}, want: actionCreate},
	} {
		t.Run(name, func(t *testing.T) {
			got := planApply(applyInput{
				manifests: []object.Manifest{manifest}, recorded: inventory{manifest.Key(): test.recorded}, always: false,
				live: map[object.Key]live.State{manifest.Key(): test.state}, ownership: owners{}.ownership(),
				unrecorded: func(object.Key) bool { return test.unrecorded },
			})[0]
			if got.action != test.want || got.completed != test.completed {
				t.Errorf("got %s (%s), completed %t, want %s, %t", got.action, got.reason, got.completed, test.want, test.completed)
			}
		})
	}
}

// TestRemarks: the condition names objects that differ from their manifests.
func TestRemarks(t *testing.T) {
	sizeOfOthers := object.Manifest{Untaken: []fieldowner.Pattern{fieldowner.ClaimSize()}}
	applied := live.Observation{UID: "u", Origin: "garden/shop", OwnedDigest: "owned"}
	whole := live.Observation{UID: "u", Origin: "garden/shop"}
	owned := applied
	owned.Owned = fieldowner.FieldFilterOf([]byte(`{"f:spec":{"f:resources":{"f:requests":{"f:storage":{}}}}}`))
	for name, test := range map[string]struct {
		change change
		want   bool
	}{
		"applied":                    {change{action: actionApply, manifest: &object.Manifest{}, observation: applied}, false},
		"sent whole":                 {change{action: actionSkip, manifest: &object.Manifest{}, observation: whole}, true},
		"sent whole, and failed":     {change{action: actionApply, manifest: &object.Manifest{}, observation: whole, err: errNotRead}, false},
		"never updated":              {change{action: actionSkip, manifest: &object.Manifest{Directive: applyoptions.Options{CreateOnly: true}}, observation: whole}, false},
		"waits":                      {change{action: actionWait, manifest: &object.Manifest{}, observation: whole}, false},
		"pruned":                     {change{action: actionDelete, observation: whole}, false},
		"a larger claim":             {change{action: actionSkip, manifest: &sizeOfOthers, observation: applied}, true},
		"a claim as in its manifest": {change{action: actionSkip, manifest: &sizeOfOthers, observation: owned}, false},
	} {
		if got := remarkOf(test.change); (got != "") != test.want {
			t.Errorf("%s: the remark is %q", name, got)
		}
	}
}
