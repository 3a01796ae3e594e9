package shoot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestSeedThatIsNotReady checks that the last operation of a Shoot remains while its Seed is not ready, and that this does
// not change how its later changes are rolled out.
func TestSeedThatIsNotReady(t *testing.T) {
	r := reporter(t)
	for name, last := range map[string]*corev1beta1.LastOperation{
		"succeeded":     {Type: "Reconcile", State: "Succeeded", Description: "before", Progress: 100},
		"in progress":   {Type: "Create", State: "Processing", Description: "before", Progress: 40},
		"its own error": {Type: "Reconcile", State: "Error", Description: "its own error", Progress: 40},
	} {
		shoot := ready().shoot
		shoot.Status.LastOperation = last
		if got := r.waitsForSeed(shoot, "the Seed is not ready"); !equality.Semantic.DeepEqual(got, shoot.Status) {
			t.Errorf("%s: the status changes to %+v", name, got.LastOperation)
		}
	}
	created := &corev1beta1.Shoot{}
	created.Status = r.waitsForSeed(created, "the Seed is not ready")
	if last := created.Status.LastOperation; last.Type != "Create" || last.State != "Pending" || last.Description != "The Seed is not ready." {
		t.Errorf("a new Shoot reports %+v", last)
	}
	if again := r.waitsForSeed(created, "the Seed is not ready"); !equality.Semantic.DeepEqual(again, created.Status) {
		t.Errorf("the status changes without a reason: %+v", again.LastOperation)
	}
	if !isUnfinished(created) {
		t.Error("the creation does not count as unfinished")
	}
}

// TestErrorsThatPass checks which errors change the status of a Shoot.
func TestErrorsThatPass(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	conflict, own := apierrors.NewConflict(resource, "a", errors.New("changed")), errors.New("no Project has the namespace")
	timeout := fmt.Errorf("list: %w", apierrors.NewServerTimeout(resource, "list", 1))
	refused := fmt.Errorf("read: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	for name, test := range map[string]struct {
		err                     error
		atRest, whileUnfinished bool
	}{
		"conflict":                {conflict, true, true},
		"timeout":                 {timeout, true, false},
		"deadline":                {fmt.Errorf("read: %w", context.DeadlineExceeded), true, false},
		"connection refused":      {refused, true, false},
		"several":                 {errors.Join(timeout, fmt.Errorf("write: %w", errors.Join(conflict, refused))), true, false},
		"its own":                 {own, false, false},
		"its own, and a conflict": {errors.Join(conflict, own), false, false},
		"forbidden":               {apierrors.NewForbidden(resource, "a", errors.New("no")), false, false},
	} {
		atRest, unfinished := ready().shoot, ready().shoot
		unfinished.Status.RetryCycleStartTime = &metav1.Time{Time: now}
		if isKept(atRest, test.err) != test.atRest || isKept(unfinished, test.err) != test.whileUnfinished {
			t.Errorf("%s: the status is kept at rest: %t, during an operation: %t", name, isKept(atRest, test.err), isKept(unfinished, test.err))
		}
	}
}

// TestErrorOfAnyText checks that a Shoot can report any text.
func TestErrorOfAnyText(t *testing.T) {
	for text, want := range map[string]string{
		"": ". Operation will be retried.", "ärger.": "Ärger. Operation will be retried.", "no space": "No space. Operation will be retried.",
	} {
		shoot := ready().shoot
		shoot.Status.LastErrors = []corev1beta1.LastError{{TaskID: &text, Description: "of a bundle"}, {Description: "another one"}}
		got := reporter(t).failed(shoot, text)
		if got.LastOperation.Description != want {
			t.Errorf("%q: %q, want %q", text, got.LastOperation.Description, want)
		}
		if errs := got.LastErrors; len(errs) != 2 || errs[0].TaskID == nil || errs[1].Description != flow.UpperFirst(text) {
			t.Errorf("%q: the last errors are %+v", text, errs)
		}
	}
}

// TestErrorsAreEvents checks that an error of the configuration becomes a Warning Event once, and not again while it stays.
func TestErrorsAreEvents(t *testing.T) {
	in := known(t)
	r, _ := failing(t, &in, "")
	recorder := events.NewFakeRecorder(10)
	r.events = recorder
	p := r.newPass(in.Shoot)
	p.in = in
	p.Result.Plan.Waits = []flow.Wait{{Name: "shoot-valid", Reason: "remove spec.a", Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem}}
	for range 2 {
		if err := p.writeProgress(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d Events", len(recorder.Events))
	}
	if event := <-recorder.Events; !strings.HasPrefix(event, "Warning "+eventError) || !strings.Contains(event, "emove spec.a") {
		t.Errorf("the Event is %q", event)
	}
}

// TestHeldRolloutIsNotAnError checks that a Shoot whose changes wait for their place in a rollout does not report problems of
// its components as an error of its last operation.
func TestHeldRolloutIsNotAnError(t *testing.T) {
	in := rested()
	in.Owner = flow.Owner{Flow: FlowName, UID: "1", Namespace: "garden-dev", Name: "one"}
	failing := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: "etcd-main", Labels: in.Owner.Labels()}}
	failing.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: "False", Message: "refused"}}
	result := flow.Result{
		Plan: flow.Plan{Waits: []flow.Wait{{Name: flow.WaitRollout, Reason: "others are rolling out", HoldsAll: true}}},
		Live: flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{{Name: "etcd-main"}: failing}},
	}
	if status, _ := reporter(t).progress(in, result); status.LastOperation.State != corev1beta1.LastOperationStateSucceeded {
		t.Errorf("%+v", status.LastOperation)
	}
}
