package shoot

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

func reporter(t *testing.T) *reconciler {
	t.Helper()
	return &reconciler{options: Options{
		SeedName: "local", Config: known(t).Config, Identity: &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: "v1"}, Clock: clocktesting.NewFakePassiveClock(now),
	}}
}

// TestStarted checks that an operation begins with a new generation, and is recorded only once.
func TestStarted(t *testing.T) {
	r, in := reporter(t), known(t)
	status := r.started(in)
	if status.LastOperation.Type != corev1beta1.LastOperationTypeCreate || status.LastOperation.State != corev1beta1.LastOperationStateProcessing || status.TechnicalID != in.Namespace ||
		status.UID != in.Shoot.UID || status.ObservedGeneration != 1 || !status.RetryCycleStartTime.Time.Equal(now) {
		t.Errorf("%+v", status)
	}
	in.Shoot.Status, in.Now = status, now.Add(time.Minute)
	if again := r.started(in); !again.RetryCycleStartTime.Time.Equal(now) || again.LastOperation.LastUpdateTime != status.LastOperation.LastUpdateTime {
		t.Errorf("the operation begins twice: %+v", again)
	}
	in.Shoot.Status.LastOperation.State = corev1beta1.LastOperationStateSucceeded
	if same := r.started(in); same.LastOperation.State != corev1beta1.LastOperationStateSucceeded {
		t.Errorf("an operation begins at rest: %+v", same.LastOperation)
	}
	in.Shoot.Generation++
	if next := r.started(in); next.LastOperation.Type != corev1beta1.LastOperationTypeReconcile || next.ObservedGeneration != 2 {
		t.Errorf("%+v", next)
	}
}

// TestProgress checks that errors become final after the time for retries, and that a succeeded operation remains so while
// there is nothing to do.
func TestProgress(t *testing.T) {
	r := reporter(t)
	waiting := flow.Result{Plan: flow.Plan{Waits: []flow.Wait{{Name: "a", Reason: "first"}, {Name: "b", Reason: "second"}, {Name: "c", Reason: "second"}}}}
	late := flow.Result{Plan: flow.Plan{Waits: []flow.Wait{{Name: "a", Reason: "first", Deadline: now.Add(-time.Minute)}}}}
	for name, test := range map[string]struct {
		before      corev1beta1.LastOperationState
		since       time.Duration
		result      flow.Result
		state       corev1beta1.LastOperationState
		description string
	}{
		"waits":           {"Processing", 0, waiting, "Processing", "Waiting: first; second"},
		"late":            {"Processing", 0, late, "Error", "Not in time: first. Operation will be retried."},
		"late, for long":  {"Error", 13 * time.Hour, late, "Failed", "Not in time: first."},
		"at rest":         {"Succeeded", 0, flow.Result{}, "Succeeded", "before"},
		"waits, was done": {"Succeeded", 0, waiting, "Succeeded", "before"},
		"late, was done":  {"Succeeded", 0, late, "Error", "Not in time: first. Operation will be retried."},
	} {
		in := known(t)
		in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Reconcile", State: test.before, Description: "before"}
		in.Shoot.Status.RetryCycleStartTime = &metav1.Time{Time: now.Add(-test.since)}
		status, _ := r.progress(in, test.result)
		if got := status.LastOperation; got.State != test.state || !strings.Contains(got.Description, test.description) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestCredentials checks that the status has the names of the encrypted resources, and the provider of the key in use.
func TestCredentials(t *testing.T) {
	in := up(t, func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = []string{"services", "configmaps.core"}
		in.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps", "statefulsets.apps"}}}
	})
	got := in.credentials().EncryptionAtRest
	if !slices.Equal(got.Resources, []string{"configmaps", "services"}) || got.Provider.Type != corev1beta1.EncryptionProviderTypeAESCBC {
		t.Errorf("%+v", got)
	}
	if rest := up(t).credentials().EncryptionAtRest; len(rest.Resources) > 0 {
		t.Errorf("%+v", rest)
	}
}
