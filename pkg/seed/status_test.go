package seed

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

func reporter() (*reconciler, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(10)
	return &reconciler{events: recorder, options: Options{
		Identity: &corev1beta1.Gardener{ID: "gardenlet-0", Name: "gardenlet", Version: "v1"}, Clock: testclock.NewFakeClock(now),
		CertificateExpires: func() time.Time { return now.Add(time.Hour + time.Millisecond) },
	}}, recorder
}

func TestAnOperationBeginsWithAGeneration(t *testing.T) {
	r, recorder := reporter()
	in := known(t)
	in.Config.Resources = &gardenletv1alpha1.ResourcesConfiguration{
		Capacity: corev1.ResourceList{"shoots": resource.MustParse("100")}, Reserved: corev1.ResourceList{"shoots": resource.MustParse("10")},
	}
	status := r.started(in)
	if last := status.LastOperation; last.State != corev1beta1.LastOperationStateProcessing || last.Type != corev1beta1.LastOperationTypeReconcile || last.Progress != 0 {
		t.Errorf("%+v", last)
	}
	if shoots := status.Allocatable["shoots"]; shoots.Value() != 90 || status.ObservedGeneration != 1 || *status.ClusterIdentity != "cluster-1" || *status.KubernetesVersion != "v1.37.1" ||
		!status.ClientCertificateExpirationTimestamp.Time.Equal(now.Add(time.Hour)) || status.Gardener.ID != "gardenlet-0" {
		t.Errorf("%+v", status)
	}
	if said := <-recorder.Events; !strings.Contains(said, "NotActive") || !strings.Contains(said, "spec.settings.loadBalancerServices") {
		t.Errorf("the Event is %q", said)
	}
	in.Seed.Status = status
	in.Seed.Status.LastOperation.State, in.Identity, in.Now = corev1beta1.LastOperationStateSucceeded, "another", now.Add(time.Hour)
	again := r.started(in)
	if again.LastOperation.State != corev1beta1.LastOperationStateSucceeded || *again.ClusterIdentity != "cluster-1" || len(recorder.Events) > 0 {
		t.Errorf("without a change: %+v, %d Events", again, len(recorder.Events))
	}
	in.Seed.Generation = 2
	if next := r.started(in); next.LastOperation.State != corev1beta1.LastOperationStateProcessing || next.ObservedGeneration != 2 {
		t.Errorf("with another generation: %+v", next.LastOperation)
	}
}

// emission returns the result of an emission of one bundle.
func emission(in Inputs, change func(*resourcesv1alpha1.ManagedResource), waits ...flow.Wait) flow.Result {
	key := in.key(bundleSystem)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Generation: 1, Labels: map[string]string{flow.LabelFlow: FlowName, flow.LabelOwner: string(in.Owner.UID)},
	}}
	mr.Status.ObservedGeneration = 1
	for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: "True", resourcesv1alpha1.ResourcesProgressing: "False",
	} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: kind, Status: status, Message: "message"})
	}
	change(mr)
	return flow.Result{
		Plan: flow.Plan{Bundles: []flow.Bundle{{Key: key}}, Waits: waits},
		Live: flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}},
	}
}

func set(kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) func(*resourcesv1alpha1.ManagedResource) {
	return func(mr *resourcesv1alpha1.ManagedResource) {
		at := slices.IndexFunc(mr.Status.Conditions, func(condition resourcesv1alpha1.Condition) bool { return condition.Type == kind })
		mr.Status.Conditions[at].Status = status
	}
}

func TestProgress(t *testing.T) {
	last := func(state corev1beta1.LastOperationState, progress int32, ago time.Duration) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state, Progress: progress, LastUpdateTime: metav1.NewTime(now.Add(-ago))}
	}
	well := func(*resourcesv1alpha1.ManagedResource) {}
	missing := flow.Wait{Name: "required-extensions", Reason: "Extension/a is missing"}
	late := flow.Wait{Name: "kubernetes-version", Reason: "too old", Deadline: now, Code: corev1beta1.ErrorRetryableConfigurationProblem}
	for name, test := range map[string]struct {
		before *corev1beta1.LastOperation
		change func(*resourcesv1alpha1.ManagedResource)
		waits  []flow.Wait
		state  corev1beta1.LastOperationState
		text   string
		later  time.Duration
	}{
		"done":                         {last(corev1beta1.LastOperationStateProcessing, 50, time.Second), well, nil, corev1beta1.LastOperationStateSucceeded, "Seed cluster reconciliation finished. Not active in this version: ", 0},
		"not rolled out":               {last(corev1beta1.LastOperationStateProcessing, 0, time.Second), set(resourcesv1alpha1.ResourcesProgressing, "True"), nil, corev1beta1.LastOperationStateProcessing, "", 0},
		"waits":                        {last(corev1beta1.LastOperationStateProcessing, 0, time.Second), well, []flow.Wait{missing}, corev1beta1.LastOperationStateProcessing, "Waiting: Extension/a is missing", 0},
		"reported a moment ago":        {last(corev1beta1.LastOperationStateProcessing, 50, 2*time.Second), well, []flow.Wait{missing}, corev1beta1.LastOperationStateProcessing, "", 3 * time.Second},
		"fails":                        {last(corev1beta1.LastOperationStateProcessing, 50, time.Second), set(resourcesv1alpha1.ResourcesApplied, "False"), nil, corev1beta1.LastOperationStateError, "Message. Operation will be retried.", 0},
		"too late":                     {last(corev1beta1.LastOperationStateProcessing, 50, time.Second), well, []flow.Wait{late}, corev1beta1.LastOperationStateError, "[ERR_RETRYABLE_CONFIGURATION_PROBLEM]", 0},
		"unhealthy long after success": {last(corev1beta1.LastOperationStateSucceeded, 100, time.Hour), set(resourcesv1alpha1.ResourcesHealthy, "False"), nil, corev1beta1.LastOperationStateSucceeded, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := reporter()
			in := known(t)
			in.Seed.Status.LastOperation = test.before
			in.Seed.Status.Conditions = []corev1beta1.Condition{
				{Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue}, {Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionFalse},
			}
			status, later := r.progress(in, emission(in, test.change, test.waits...))
			if got := status.LastOperation; got.State != test.state || !strings.Contains(got.Description, test.text) || later != test.later {
				t.Errorf("%+v, next check in %s", got, later)
			}
			begun := test.before.State != corev1beta1.LastOperationStateSucceeded && test.state == corev1beta1.LastOperationStateSucceeded
			if healthy := status.Conditions[0].Status; (healthy == corev1beta1.ConditionProgressing) != begun || status.Conditions[1].Status != corev1beta1.ConditionFalse {
				t.Errorf("conditions %+v", status.Conditions)
			}
		})
	}
}

func TestErrorsAreReported(t *testing.T) {
	r, _ := reporter()
	in := known(t)
	status := r.failed(in.Seed, errors.New("read the version of the seed: no route"))
	if got := status.LastOperation.Description; got != "Read the version of the seed: no route. Operation will be retried." || status.LastOperation.State != corev1beta1.LastOperationStateError {
		t.Errorf("%+v", status.LastOperation)
	}
	in.Seed.Status, r.options.Clock = status, testclock.NewFakeClock(now.Add(time.Minute))
	if again := r.failed(in.Seed, errors.New("read the version of the seed: no route")); !again.LastOperation.LastUpdateTime.Equal(&status.LastOperation.LastUpdateTime) {
		t.Error("the same error is written again")
	}
}
