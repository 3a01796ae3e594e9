package shoot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// ready returns the inputs of a decision about a Shoot whose generation is observed and whose last operation has succeeded.
func ready() decisionInput {
	identity := &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: "v1"}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", Generation: 1}, Status: corev1beta1.SeedStatus{ObservedGeneration: 1, Gardener: identity}}
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		seed.Status.Conditions = append(seed.Status.Conditions, corev1beta1.Condition{Type: kind, Status: corev1beta1.ConditionTrue})
	}
	return decisionInput{
		shoot: &corev1beta1.Shoot{
			// With this UID, the turn of the Shoot is at the begin of its window.
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one", UID: "uid-120", Generation: 2, Annotations: map[string]string{}},
			Spec:       corev1beta1.ShootSpec{Maintenance: &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "233000+0000"}}},
			Status:     corev1beta1.ShootStatus{ObservedGeneration: 2, LastOperation: &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded"}},
		},
		seed: seed, gardenlet: identity, config: &gardenletv1alpha1.ShootController{}, now: now,
	}
}

func TestDecide(t *testing.T) {
	confined := func(l *decisionInput) { l.shoot.Spec.Maintenance.ConfineSpecUpdateRollout = ptr.To(true) }
	deleted := func(l *decisionInput) { l.shoot.DeletionTimestamp = &metav1.Time{Time: now} }
	stopped := func(l *decisionInput) {
		l.seed.Annotations = map[string]string{constants.AnnotationShootEmergencyStopReconciliations: "true"}
	}
	ignored := func(l *decisionInput) { l.shoot.Annotations[constants.AnnotationShootIgnore] = "true" }
	for name, test := range map[string]struct {
		change []func(*decisionInput)
		why    string
		again  time.Duration
	}{
		"at rest":                    {nil, "", 0},
		"new":                        {[]func(*decisionInput){func(l *decisionInput) { l.shoot.Status = corev1beta1.ShootStatus{} }, confined}, "", 0},
		"emergency stop":             {[]func(*decisionInput){stopped}, "stops the reconciliation", 0},
		"emergency stop, deletion":   {[]func(*decisionInput){stopped, deleted}, "", 0},
		"failed":                     {[]func(*decisionInput){func(l *decisionInput) { l.shoot.Status.LastOperation.State = "Failed" }}, "failed", 0},
		"failed, then changed":       {[]func(*decisionInput){func(l *decisionInput) { l.shoot.Status.LastOperation.State = "Failed"; l.shoot.Generation++ }}, "", 0},
		"ignored, not allowed":       {[]func(*decisionInput){ignored}, "", 0},
		"ignored":                    {[]func(*decisionInput){ignored, func(l *decisionInput) { l.config.RespectSyncPeriodOverwrite = ptr.To(true) }}, "ignored", 0},
		"ignored in garden":          {[]func(*decisionInput){ignored, func(l *decisionInput) { l.shoot.Namespace = "garden" }}, "ignored", 0},
		"ignored, deletion":          {[]func(*decisionInput){ignored, deleted, func(l *decisionInput) { l.shoot.Namespace = "garden" }}, "", 0},
		"seed not observed":          {[]func(*decisionInput){func(l *decisionInput) { l.seed.Generation++ }}, "has not been observed", seedAgain},
		"another gardenlet":          {[]func(*decisionInput){func(l *decisionInput) { l.gardenlet = &corev1beta1.Gardener{ID: "b"} }}, "this gardenlet has not", seedAgain},
		"seed not healthy":           {[]func(*decisionInput){func(l *decisionInput) { l.seed.Status.Conditions[1].Status = "False" }}, "SeedSystemComponentsHealthy is False", seedAgain},
		"seed not healthy, deletion": {[]func(*decisionInput){deleted, func(l *decisionInput) { l.seed.Status = corev1beta1.SeedStatus{} }}, "", 0},
		"seed goes": {[]func(*decisionInput){func(l *decisionInput) {
			l.seed.Status.Conditions = nil
			l.seed.DeletionTimestamp = &metav1.Time{Time: now}
		}}, "", 0},
		"confined":                 {[]func(*decisionInput){confined}, "confined", 10 * time.Hour},
		"confined, changed":        {[]func(*decisionInput){confined, func(l *decisionInput) { l.shoot.Generation++ }}, "", 0},
		"confined, not finished":   {[]func(*decisionInput){confined, func(l *decisionInput) { l.shoot.Status.RetryCycleStartTime = &metav1.Time{Time: now} }}, "", 0},
		"confined, later an error": {[]func(*decisionInput){confined, func(l *decisionInput) { l.shoot.Status.LastOperation.State = "Error" }}, "confined", 10 * time.Hour},
		"confined, creation fails": {[]func(*decisionInput){confined, func(l *decisionInput) {
			l.shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Error"}
		}}, "", 0},
		"confined, deletion":        {[]func(*decisionInput){confined, deleted}, "", 0},
		"confined, in the window":   {[]func(*decisionInput){confined, func(l *decisionInput) { l.now = now.Add(11 * time.Hour) }}, "", 0},
		"confined, end of window":   {[]func(*decisionInput){confined, func(l *decisionInput) { l.now = now.Add(11*time.Hour + 20*time.Minute) }}, "confined", 22*time.Hour + 40*time.Minute},
		"gardenlet in window only":  {[]func(*decisionInput){func(l *decisionInput) { l.config.ReconcileInMaintenanceOnly = ptr.To(true) }}, "confined", 10 * time.Hour},
		"confined, without windows": {[]func(*decisionInput){confined, func(l *decisionInput) { l.shoot.Spec.Maintenance.TimeWindow = nil }}, "", 0},
	} {
		l := ready()
		for _, each := range test.change {
			each(&l)
		}
		got := l.decide()
		if got.run != (test.why == "") || !got.run && (!strings.Contains(got.why, test.why) || got.again != test.again) {
			t.Errorf("%s: %+v, want %q, next in %s", name, got, test.why, test.again)
		}
	}
}

func TestOperationType(t *testing.T) {
	last := func(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: kind, State: state}
	}
	for _, test := range []struct {
		last *corev1beta1.LastOperation
		want corev1beta1.LastOperationType
	}{
		{nil, "Create"}, {last("Create", "Error"), "Create"}, {last("Create", "Failed"), "Create"}, {last("Create", "Succeeded"), "Reconcile"}, {last("Reconcile", "Error"), "Reconcile"},
	} {
		shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: test.last}}
		if got := operationType(shoot); got != test.want {
			t.Errorf("%+v: %s, want %s", test.last, got, test.want)
		}
		shoot.DeletionTimestamp = &metav1.Time{Time: now}
		if got := operationType(shoot); got != corev1beta1.LastOperationTypeDelete {
			t.Errorf("%+v: %s for a Shoot that is being deleted", test.last, got)
		}
	}
}
