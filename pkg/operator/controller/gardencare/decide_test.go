package gardencare

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func resource(class, label string, healthy resourcesv1alpha1.ConditionStatus) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "one", Labels: map[string]string{}}}
	if class != "" {
		mr.Spec.Class = ptr.To(class)
	}
	if label != "" {
		mr.Labels["care.gardener.cloud/condition-type"] = label
	}
	for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: healthy, resourcesv1alpha1.ResourcesProgressing: "False",
	} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: kind, Status: status, Reason: "Some", Message: "text"})
	}
	return mr
}

func statuses(conditions []corev1beta1.Condition) [4]string {
	var all [4]string
	for i, kind := range []corev1beta1.ConditionType{
		operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.VirtualComponentsHealthy,
		operatorv1alpha1.ObservabilityComponentsHealthy,
	} {
		all[i] = string(corev1beta1.FindCondition(conditions, kind).Status)
	}
	return all
}

// TestConditions checks which ManagedResources count for which condition.
func TestConditions(t *testing.T) {
	const seed = "seed"
	runtime, virtual := resource(seed, "", "True"), resource("", "", "True")
	for name, test := range map[string]struct {
		resources []resourcesv1alpha1.ManagedResource
		down      bool
		err       error
		want      [4]string
	}{
		"nothing deployed":       {nil, true, nil, [4]string{"False", "Unknown", "Unknown", "True"}},
		"all well":               {[]resourcesv1alpha1.ManagedResource{runtime, virtual}, false, nil, [4]string{"True", "True", "True", "True"}},
		"does not answer":        {[]resourcesv1alpha1.ManagedResource{runtime, virtual}, false, errors.New("timeout"), [4]string{"False", "True", "True", "True"}},
		"runtime fails":          {[]resourcesv1alpha1.ManagedResource{runtime, virtual, resource(seed, "", "False")}, false, nil, [4]string{"True", "False", "True", "True"}},
		"labelled runtime fails": {[]resourcesv1alpha1.ManagedResource{virtual, resource(seed, "RuntimeComponentsHealthy", "False")}, false, nil, [4]string{"True", "False", "True", "True"}},
		"virtual fails":          {[]resourcesv1alpha1.ManagedResource{runtime, resource("", "", "False")}, false, nil, [4]string{"True", "True", "False", "True"}},
		"virtual in runtime":     {[]resourcesv1alpha1.ManagedResource{runtime, virtual, resource(seed, "VirtualComponentsHealthy", "False")}, false, nil, [4]string{"True", "True", "False", "True"}},
		"observability fails":    {[]resourcesv1alpha1.ManagedResource{runtime, virtual, resource(seed, "ObservabilityComponentsHealthy", "False")}, false, nil, [4]string{"True", "True", "True", "False"}},
	} {
		o := Observation{Garden: &operatorv1alpha1.Garden{}, Resources: test.resources, Connected: !test.down, ServerError: test.err, Now: now}
		conditions, next := o.Conditions()
		if got := statuses(conditions); got != test.want || !next.IsZero() {
			t.Errorf("%s: got %v, want %v, next %s", name, got, test.want, next)
		}
		o.Garden.Status.Conditions = conditions
		o.Now = now.Add(time.Hour)
		again, _ := o.Conditions()
		for _, condition := range again {
			if !condition.LastUpdateTime.Time.Equal(now) {
				t.Errorf("%s: %s changes without a reason", name, condition.Type)
			}
		}
	}
}

// TestThresholds checks that a condition that was True is Progressing for the time of its threshold, and False afterwards.
func TestThresholds(t *testing.T) {
	garden := &operatorv1alpha1.Garden{}
	o := Observation{
		Garden: garden, Resources: []resourcesv1alpha1.ManagedResource{resource("seed", "", "True"), resource("", "", "True")}, Connected: true, Now: now,
		Thresholds: []gardenletv1alpha1.ConditionThreshold{{Type: "RuntimeComponentsHealthy", Duration: metav1.Duration{Duration: time.Minute}}},
	}
	step := func(after time.Duration, want string, wantNext time.Time) {
		t.Helper()
		o.Now = now.Add(after)
		conditions, next := o.Conditions()
		if got := statuses(conditions)[1]; got != want || !next.Equal(wantNext) {
			t.Errorf("after %s: got %s until %s, want %s until %s", after, got, next, want, wantNext)
		}
		garden.Status.Conditions = conditions
	}
	step(0, "True", time.Time{})
	o.Resources[0] = resource("seed", "", "False")
	step(0, "Progressing", now.Add(time.Minute))
	step(30*time.Second, "Progressing", now.Add(time.Minute))
	step(time.Minute, "False", time.Time{})
	step(time.Hour, "False", time.Time{})
	o.Resources[0] = resource("seed", "", "True")
	step(2*time.Hour, "True", time.Time{})
}

// TestDelay checks that a message that changes often does not delay a change of a status.
func TestDelay(t *testing.T) {
	condition := func(kind, status, message string, at time.Time) corev1beta1.Condition {
		return corev1beta1.Condition{
			Type: corev1beta1.ConditionType(kind), Status: corev1beta1.ConditionStatus(status), Message: message, LastUpdateTime: metav1.NewTime(at),
		}
	}
	before := []corev1beta1.Condition{condition("A", "False", "x", now), condition("B", "True", "x", now)}
	soon := now.Add(time.Second)
	if later := delay(before, []corev1beta1.Condition{condition("A", "False", "y", soon), condition("B", "True", "x", now)}, time.Time{}, soon); later != 9*time.Second {
		t.Errorf("a message is delayed by %s", later)
	}
	if later := delay(before, []corev1beta1.Condition{condition("A", "False", "y", soon), condition("B", "False", "x", soon)}, time.Time{}, soon); later != 0 {
		t.Errorf("a status is delayed by %s", later)
	}
}
