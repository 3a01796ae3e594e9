package care

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func component(name string, healthy resourcesv1alpha1.ConditionStatus) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: name, Generation: 2}}
	mr.Status.ObservedGeneration = 2
	mr.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: "True"}, {Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Reason: "DeploymentUnhealthy", Message: "no Pod"},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: "False"},
	}
	return mr
}

// healthy is a Shoot that works.
func healthy(change ...func(*Observation)) Observation {
	o := Observation{
		Shoot:        &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", LastUpdateTime: metav1.NewTime(now.Add(-time.Hour))}}},
		ControlPlane: []resourcesv1alpha1.ManagedResource{component("kube-apiserver", "True")}, System: []resourcesv1alpha1.ManagedResource{component("shoot-core-system", "True")},
		Required: []string{"kube-apiserver"}, Asked: true, Now: now,
	}
	for _, each := range change {
		each(&o)
	}
	return o
}

func TestConditions(t *testing.T) {
	sick := func(o *Observation) { o.ControlPlane[0] = component("kube-apiserver", "False") }
	last := func(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) func(*Observation) {
		return func(o *Observation) {
			o.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: state}
		}
	}
	for name, test := range map[string]struct {
		change []func(*Observation)
		want   [3]string // API server, control plane, system components
	}{
		"healthy":            {nil, [3]string{"True HealthzRequestSucceeded", "True ControlPlaneRunning", "True SystemComponentsRunning"}},
		"does not answer":    {[]func(*Observation){func(o *Observation) { o.Error = errors.New("no") }}, [3]string{"False HealthzRequestFailed", "True ControlPlaneRunning", "True SystemComponentsRunning"}},
		"not asked":          {[]func(*Observation){func(o *Observation) { o.Asked = false }}, [3]string{"False APIServerDown", "True ControlPlaneRunning", "True SystemComponentsRunning"}},
		"sick":               {[]func(*Observation){sick}, [3]string{"True HealthzRequestSucceeded", "False DeploymentUnhealthy", "True SystemComponentsRunning"}},
		"a part is missing":  {[]func(*Observation){func(o *Observation) { o.ControlPlane = nil }}, [3]string{"True HealthzRequestSucceeded", "False DeploymentMissing", "True SystemComponentsRunning"}},
		"nothing in cluster": {[]func(*Observation){func(o *Observation) { o.System = nil }}, [3]string{"True HealthzRequestSucceeded", "True ControlPlaneRunning", "Unknown ConditionInitialized"}},
		"not observed":       {[]func(*Observation){func(o *Observation) { o.System[0].Generation++ }}, [3]string{"True HealthzRequestSucceeded", "True ControlPlaneRunning", "False OutdatedStatus"}},
		"being created":      {[]func(*Observation){sick, last("Create", "Error")}, [3]string{"True HealthzRequestSucceeded", "Progressing DeploymentUnhealthy", "True SystemComponentsRunning"}},
		"being changed":      {[]func(*Observation){sick, last("Reconcile", "Processing")}, [3]string{"True HealthzRequestSucceeded", "Progressing DeploymentUnhealthy", "True SystemComponentsRunning"}},
		"hibernated":         {[]func(*Observation){sick, func(o *Observation) { o.Hibernated, o.Asked = true, false }}, [3]string{"True ConditionNotChecked", "True ConditionNotChecked", "True ConditionNotChecked"}},
	} {
		conditions, next := healthy(test.change...).Conditions()
		if len(conditions) != 3 || !next.IsZero() {
			t.Fatalf("%s: %+v, next %s", name, conditions, next)
		}
		for i, condition := range conditions {
			if got := string(condition.Status) + " " + condition.Reason; got != test.want[i] {
				t.Errorf("%s: %s is %s, want %s", name, condition.Type, got, test.want[i])
			}
		}
	}
}

// TestThreshold: a failure shows as Progressing for a time, and its times move with its content only.
func TestThreshold(t *testing.T) {
	fail := func(o *Observation) {
		o.Error, o.Thresholds = errors.New("no"), map[corev1beta1.ConditionType]time.Duration{corev1beta1.ShootAPIServerAvailable: time.Minute}
	}
	conditions, _ := healthy().Conditions()
	o := healthy(fail, func(o *Observation) { o.Shoot.Status.Conditions = conditions })
	first, next := o.Conditions()
	if first[0].Status != corev1beta1.ConditionProgressing || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v, next %s", first[0], next)
	}
	o.Shoot.Status.Conditions, o.Now = first, now.Add(30*time.Second)
	if again, _ := o.Conditions(); !again[0].LastUpdateTime.Equal(&first[0].LastUpdateTime) {
		t.Errorf("the time of an unchanged condition moved: %+v", again[0])
	}
	o.Now = now.Add(time.Minute)
	if late, _ := o.Conditions(); late[0].Status != corev1beta1.ConditionFalse {
		t.Errorf("%+v", late[0])
	}
}
