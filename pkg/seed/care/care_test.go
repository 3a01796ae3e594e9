package care

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func component(name string, change ...func(*resourcesv1alpha1.ManagedResource)) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Generation: 2}}
	mr.Status.ObservedGeneration = 2
	for _, each := range []struct {
		kind   resourcesv1alpha1.ConditionType
		status resourcesv1alpha1.ConditionStatus
	}{
		{resourcesv1alpha1.ResourcesApplied, "True"}, {resourcesv1alpha1.ResourcesHealthy, "True"}, {resourcesv1alpha1.ResourcesProgressing, "False"},
	} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: each.kind, Status: each.status, Reason: "Reason" + string(each.kind), Message: "message"})
	}
	for _, each := range change {
		each(&mr)
	}
	return mr
}

func with(at int, status resourcesv1alpha1.ConditionStatus) func(*resourcesv1alpha1.ManagedResource) {
	return func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions[at].Status = status }
}

func TestSystemComponentsHealthy(t *testing.T) {
	for name, test := range map[string]struct {
		components []resourcesv1alpha1.ManagedResource
		status     corev1beta1.ConditionStatus
		reason     string
	}{
		"none":                {nil, "Unknown", corev1beta1.ReasonConditionInitialized},
		"all well":            {[]resourcesv1alpha1.ManagedResource{component("a"), component("b")}, "True", reasonRunning},
		"not observed":        {[]resourcesv1alpha1.ManagedResource{component("a", func(mr *resourcesv1alpha1.ManagedResource) { mr.Generation = 3 })}, "False", "OutdatedStatus"},
		"not applied":         {[]resourcesv1alpha1.ManagedResource{component("a"), component("b", with(0, "False"))}, "False", "ReasonResourcesApplied"},
		"not healthy":         {[]resourcesv1alpha1.ManagedResource{component("a", with(1, "False"))}, "False", "ReasonResourcesHealthy"},
		"health unknown":      {[]resourcesv1alpha1.ManagedResource{component("a", with(1, "Unknown"))}, "False", "ReasonResourcesHealthy"},
		"progressing":         {[]resourcesv1alpha1.ManagedResource{component("a", with(2, "True"))}, "False", "ReasonResourcesProgressing"},
		"without a condition": {[]resourcesv1alpha1.ManagedResource{component("a", func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions = mr.Status.Conditions[:2] })}, "False", "MissingManagedResourceCondition"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observation{seed: &corev1beta1.Seed{}, components: test.components, now: now}
			if got, next := o.systemComponents(); got.Status != test.status || got.Reason != test.reason || !next.IsZero() {
				t.Errorf("%+v, next %s", got, next)
			}
		})
	}
}

func TestThresholds(t *testing.T) {
	const threshold = time.Minute
	failing := []resourcesv1alpha1.ManagedResource{component("a", with(1, "False"))}
	condition := func(status corev1beta1.ConditionStatus, reason string, since time.Duration) []corev1beta1.Condition {
		return []corev1beta1.Condition{{Type: corev1beta1.SeedSystemComponentsHealthy, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-since))}}
	}
	for name, test := range map[string]struct {
		before []corev1beta1.Condition
		last   *corev1beta1.LastOperation
		status corev1beta1.ConditionStatus
		next   time.Time
	}{
		"was healthy":            {condition("True", reasonRunning, time.Hour), nil, "Progressing", now.Add(threshold)},
		"progressing":            {condition("Progressing", "x", 20*time.Second), nil, "Progressing", now.Add(40 * time.Second)},
		"progressing too long":   {condition("Progressing", "x", threshold), nil, "False", time.Time{}},
		"failing":                {condition("False", "ReasonResourcesHealthy", time.Hour), nil, "False", time.Time{}},
		"failing for another":    {condition("False", "x", time.Hour), nil, "Progressing", now.Add(threshold)},
		"after an operation":     {condition("False", "ReasonResourcesHealthy", time.Hour), succeeded(10 * time.Second), "Progressing", now.Add(50 * time.Second)},
		"long after one":         {condition("False", "ReasonResourcesHealthy", time.Hour), succeeded(time.Hour), "False", time.Time{}},
		"not known before":       {nil, nil, "False", time.Time{}},
		"unknown, and it failed": {condition("Unknown", "x", time.Hour), nil, "False", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Status: corev1beta1.SeedStatus{Conditions: test.before, LastOperation: test.last}}
			got, next := observation{seed: seed, components: failing, threshold: threshold, now: now}.systemComponents()
			if got.Status != test.status || !next.Equal(test.next) {
				t.Errorf("%s, next %s, want %s, %s", got.Status, next, test.status, test.next)
			}
		})
	}
}

func succeeded(ago time.Duration) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(now.Add(-ago))}
}

// TestTooEarly checks that another message for the same failure is delayed, and that the delay does not postpone the change to
// False.
func TestTooEarly(t *testing.T) {
	before := corev1beta1.Condition{Status: corev1beta1.ConditionProgressing, LastUpdateTime: metav1.NewTime(now.Add(-time.Second))}
	next := corev1beta1.Condition{Status: corev1beta1.ConditionProgressing, LastUpdateTime: metav1.NewTime(now)}
	failed := corev1beta1.Condition{Status: corev1beta1.ConditionFalse, LastUpdateTime: metav1.NewTime(now)}
	for name, test := range map[string]struct {
		next    corev1beta1.Condition
		changes time.Time
		want    time.Duration
	}{
		"another explanation":                 {next, time.Time{}, 9 * time.Second},
		"another explanation, soon a failure": {next, now.Add(2 * time.Second), 2 * time.Second},
		"another status":                      {failed, time.Time{}, 0},
		"nothing":                             {before, now.Add(2 * time.Second), 0},
	} {
		if got := readiness.Delay(&before, test.next, test.changes, now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestOwnPods checks that Pods of the seed itself are not deleted.
func TestOwnPods(t *testing.T) {
	for namespace, want := range map[string]bool{"kube-system": false, "shoot--dev--one": true} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}}
		if mayBeStale(pod) != want {
			t.Errorf("an evicted Pod in %s may be stale: %t, want %t", namespace, !want, want)
		}
	}
}

// TestBackup checks that a Seed with a backup reports the Shoots whose backups are not taken.
func TestBackup(t *testing.T) {
	o := observation{seed: &corev1beta1.Seed{}, now: now}
	if got := o.backup(); got != nil {
		t.Errorf("without a backup: %+v", got)
	}
	o.seed.Spec.Backup = &corev1beta1.Backup{}
	o.shoots = []corev1beta1.Shoot{{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "one"}}}
	if got := o.backup(); got == nil || got.Type != "BackupReady" || got.Status != corev1beta1.ConditionTrue || got.Reason != reasonBackups {
		t.Errorf("with a backup: %+v", got)
	}
	o.shoots[0].Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootBackupReady, Status: corev1beta1.ConditionFalse}}
	if got := o.backup(); got.Status != corev1beta1.ConditionFalse || got.Reason != reasonNoBackups || !strings.Contains(got.Message, "garden-a/one") {
		t.Errorf("with a Shoot whose backups fail: %+v", got)
	}
}
