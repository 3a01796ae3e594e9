package health

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func finding(of Finding) found { return found{condition: ControlPlaneHealthy, finding: of} }

// before returns a condition that has had a status for some time.
func before(status corev1beta1.ConditionStatus, ago time.Duration) []corev1beta1.Condition {
	since := metav1.NewTime(now.Add(-ago))
	return []corev1beta1.Condition{{Type: "Other", Status: corev1beta1.ConditionTrue}, {Type: ControlPlaneHealthy, Status: status, LastTransitionTime: since, LastUpdateTime: since}}
}

func TestConclude(t *testing.T) {
	broken := found{condition: ControlPlaneHealthy, err: errors.New("no connection")}
	for name, test := range map[string]struct {
		before  []corev1beta1.Condition
		all     []found
		status  corev1beta1.ConditionStatus
		reason  string
		message string
		next    time.Time
	}{
		"healthy":              {nil, []found{finding(Healthy()), finding(Healthy())}, corev1beta1.ConditionTrue, ReasonSuccessful, "All health checks are successful.", time.Time{}},
		"one is not":           {nil, []found{finding(Healthy()), finding(Unhealthy("A is down."))}, corev1beta1.ConditionFalse, ReasonUnsuccessful, "A is down.", time.Time{}},
		"two are not":          {nil, []found{finding(Unhealthy("A is down.")), finding(Progressing("C starts.")), finding(Unhealthy("B is down."))}, corev1beta1.ConditionFalse, ReasonUnsuccessful, "A is down. B is down.", time.Time{}},
		"unknown":              {nil, []found{finding(Healthy()), broken}, corev1beta1.ConditionUnknown, ReasonError, "The check could not be run: no connection", time.Time{}},
		"worse than unknown":   {nil, []found{finding(Unhealthy("A is down.")), broken}, corev1beta1.ConditionFalse, ReasonUnsuccessful, "A is down.", time.Time{}},
		"begins to progress":   {before(corev1beta1.ConditionTrue, time.Hour), []found{finding(Progressing("C starts."))}, corev1beta1.ConditionProgressing, ReasonProgressing, "C starts.", now.Add(5 * time.Minute)},
		"progresses":           {before(corev1beta1.ConditionProgressing, time.Minute), []found{finding(Progressing("C starts."))}, corev1beta1.ConditionProgressing, ReasonProgressing, "C starts.", now.Add(4 * time.Minute)},
		"progresses too long":  {before(corev1beta1.ConditionProgressing, 5*time.Minute), []found{finding(Progressing("C starts."))}, corev1beta1.ConditionFalse, ReasonUnsuccessful, "C starts.", time.Time{}},
		"failed, tries again":  {before(corev1beta1.ConditionFalse, time.Hour), []found{finding(Progressing("C starts."))}, corev1beta1.ConditionFalse, ReasonUnsuccessful, "C starts.", time.Time{}},
		"failed, becomes well": {before(corev1beta1.ConditionFalse, time.Hour), []found{finding(Healthy())}, corev1beta1.ConditionTrue, ReasonSuccessful, "All health checks are successful.", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			after, next := conclude(test.before, test.all, nil, now)
			got := after[len(after)-1]
			if got.Type != ControlPlaneHealthy || got.Status != test.status || got.Reason != test.reason || got.Message != test.message || !next.Equal(test.next) {
				t.Errorf("%+v, next %s", got, next)
			}
			if len(test.before) > 0 && after[0].Type != "Other" {
				t.Errorf("the condition of another controller is lost: %+v", after)
			}
		})
	}
}

// TestTimesMoveWithTheirContent checks that the times of a condition change only with its content, so that unchanged findings
// write nothing.
func TestTimesMoveWithTheirContent(t *testing.T) {
	first, _ := conclude(nil, []found{finding(Unhealthy("A is down."))}, nil, now)
	same, _ := conclude(first, []found{finding(Unhealthy("A is down."))}, nil, now.Add(time.Minute))
	if !same[0].LastUpdateTime.Equal(&first[0].LastUpdateTime) || !same[0].LastTransitionTime.Equal(&first[0].LastTransitionTime) {
		t.Errorf("the times of %+v have changed", same[0])
	}
	other, _ := conclude(first, []found{finding(Unhealthy("B is down."))}, nil, now.Add(time.Minute))
	if other[0].LastUpdateTime.Equal(&first[0].LastUpdateTime) || !other[0].LastTransitionTime.Equal(&first[0].LastTransitionTime) {
		t.Errorf("the times of %+v are wrong", other[0])
	}
	if left, _ := conclude(first, nil, []corev1beta1.ConditionType{ControlPlaneHealthy}, now); len(left) > 0 {
		t.Errorf("an obsolete condition remains: %+v", left)
	}
}

func TestOfManagedResource(t *testing.T) {
	condition := func(of resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, message string) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{Type: of, Status: status, Message: message}
	}
	applied := condition(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, "")
	healthy := condition(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, "")
	for name, test := range map[string]struct {
		generation int64
		conditions []resourcesv1alpha1.Condition
		want       corev1beta1.ConditionStatus
	}{
		"healthy":      {1, []resourcesv1alpha1.Condition{applied, healthy}, corev1beta1.ConditionTrue},
		"not observed": {2, []resourcesv1alpha1.Condition{applied, healthy}, corev1beta1.ConditionProgressing},
		"not applied":  {1, []resourcesv1alpha1.Condition{condition(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionFalse, "refused")}, corev1beta1.ConditionFalse},
		"not checked":  {1, []resourcesv1alpha1.Condition{applied}, corev1beta1.ConditionProgressing},
		"rolling out":  {1, []resourcesv1alpha1.Condition{applied, healthy, condition(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, "one Pod is left")}, corev1beta1.ConditionProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: test.generation}}
			mr.Status.ObservedGeneration, mr.Status.Conditions = 1, test.conditions
			if got := ofManagedResource(mr); got.Status != test.want {
				t.Errorf("%+v", got)
			}
		})
	}
}
