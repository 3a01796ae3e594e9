package shoot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

// TestSourceThatComesBack checks that the gardenlet of a Seed that a control plane has left sends no request for it, whatever the Seed
// still has of it and whatever the destination does. The reconciler has no client of the seed, so that each request to it would fail the test.
func TestSourceThatComesBack(t *testing.T) {
	scheme := newScheme(t)
	for name, last := range map[string]*corev1beta1.LastOperation{
		"left":                   succeededAs(corev1beta1.LastOperationTypeMigrate),
		"given up by hand":       {Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateAborted},
		"the destination fails":  {Type: corev1beta1.LastOperationTypeRestore, State: corev1beta1.LastOperationStateFailed},
		"the destination serves": succeededAs(corev1beta1.LastOperationTypeReconcile),
		"being deleted there":    {Type: corev1beta1.LastOperationTypeDelete, State: corev1beta1.LastOperationStateProcessing},
		"status is restored":     nil,
	} {
		for _, bound := range []string{destinationSeed, sourceSeed} {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one", UID: "uid", Finalizers: []string{constants.GardenerName}}}
			shoot.Spec.SeedName, shoot.Status.SeedName = ptr.To(bound), ptr.To(destinationSeed)
			shoot.Status.TechnicalID, shoot.Status.LastOperation = "shoot--dev--one", last
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot).WithStatusSubresource(shoot).Build()
			before := &corev1beta1.Shoot{}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), before); err != nil {
				t.Fatal(err)
			}
			r := reporter(t)
			r.garden, r.objects, r.emitter = garden, gardenobjects.New(nil), &flow.Emitter{Reader: garden}
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: shoot.Namespace, Name: shoot.Name}}
			if result, err := r.Reconcile(t.Context(), request); err != nil || result != (reconcile.Result{}) {
				t.Errorf("%s, bound to %s: %+v, %v", name, bound, result, err)
			}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil || shoot.ResourceVersion != before.ResourceVersion {
				t.Errorf("%s, bound to %s: the Shoot was written: %v", name, bound, err)
			}
		}
	}
}

// TestDestinationBreaks checks when the destination of a move restores: it waits while it is not ready, and goes on although it is being
// deleted, because the control plane has no other place. The source goes on whatever its own health is.
func TestDestinationBreaks(t *testing.T) {
	unhealthy := func(l *decisionInput) { l.seed.Status.Conditions[1].Status = corev1beta1.ConditionFalse }
	goes := func(l *decisionInput) { l.seed.DeletionTimestamp = &metav1.Time{Time: now} }
	left := corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded}
	restoring := corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeRestore, State: corev1beta1.LastOperationStateError}
	leaving := corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateProcessing}
	for name, test := range map[string]struct {
		bound  string
		last   corev1beta1.LastOperation
		change func(*decisionInput)
		runs   bool
	}{
		"arrives":                                 {"local", left, func(*decisionInput) {}, true},
		"arrives, not ready":                      {"local", left, unhealthy, false},
		"restores, not ready any more":            {"local", restoring, unhealthy, false},
		"restores, is being deleted":              {"local", restoring, goes, true},
		"restores, not ready, and deleted":        {"local", restoring, func(l *decisionInput) { unhealthy(l); goes(l) }, true},
		"leaves":                                  {"other", leaving, func(*decisionInput) {}, true},
		"leaves a seed that is not ready":         {"other", leaving, unhealthy, true},
		"leaves a seed that is being deleted":     {"other", leaving, goes, true},
		"leaves in the wrong maintenance window":  {"other", leaving, confines, true},
		"arrives in the wrong maintenance window": {"local", left, confines, true},
	} {
		in := ready()
		in.shoot.Spec.SeedName, in.shoot.Status.SeedName, in.shoot.Status.LastOperation = &test.bound, ptr.To("local"), &test.last
		test.change(&in)
		if got := in.decide(); got.run != test.runs || !test.runs && (!got.failed || got.again != seedAgain) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func confines(l *decisionInput) { l.shoot.Spec.Maintenance.ConfineSpecUpdateRollout = ptr.To(true) }

// TestDeletionInAMove checks what the deletion of a Shoot that is bound to another Seed does: the Seed that has the control plane deletes it,
// and nothing begins to leave. Admission refuses the deletion after that.
func TestDeletionInAMove(t *testing.T) {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}}
	shoot.Spec.SeedName, shoot.Status.SeedName = ptr.To(destinationSeed), ptr.To(sourceSeed)
	shoot.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionTrue}}
	for _, forced := range []bool{false, true} {
		if forced {
			shoot.Annotations = map[string]string{constants.AnnotationConfirmationForceDeletion: "true"}
		}
		shoot.Status.LastOperation = succeededAs(corev1beta1.LastOperationTypeReconcile)
		if got := phaseOf(shoot); got != phaseStays || operationType(shoot) != corev1beta1.LastOperationTypeDelete {
			t.Errorf("forced %t: phase %d, operation %s", forced, got, operationType(shoot))
		}
		if !reporter(t).isOurs(shoot) {
			t.Errorf("forced %t: the Seed that has the control plane does not delete it", forced)
		}
	}
}
