package shoot

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestPhase checks which phase each Seed sees.
func TestPhase(t *testing.T) {
	operation := func(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: kind, State: state}
	}
	const (
		reconcile, migrate, restore = corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeRestore
		done, failing               = corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateError
	)
	for name, test := range map[string]struct {
		spec, status string
		last         *corev1beta1.LastOperation
		deleting     bool
		unready      bool
		hibernates   bool
		want         phase
	}{
		"new":                          {spec: "s", want: phaseStays},
		"stays":                        {spec: "s", status: "s", last: operation(reconcile, done), want: phaseStays},
		"bound to another":             {spec: "d", status: "s", last: operation(reconcile, done), want: phaseMigrate},
		"bound, not ready":             {spec: "d", status: "s", last: operation(reconcile, done), unready: true, want: phaseStays},
		"leaving, not ready any more":  {spec: "d", status: "s", last: operation(migrate, failing), unready: true, want: phaseMigrate},
		"bound, failed before":         {spec: "d", status: "s", last: operation(reconcile, failing), want: phaseMigrate},
		"leaving":                      {spec: "d", status: "s", last: operation(migrate, failing), want: phaseMigrate},
		"bound to another in creation": {spec: "d", status: "s", last: operation(corev1beta1.LastOperationTypeCreate, failing), want: phaseStays},
		"created and bound to another": {spec: "d", status: "s", last: operation(corev1beta1.LastOperationTypeCreate, done), want: phaseMigrate},
		"falls asleep":                 {spec: "d", status: "s", last: operation(reconcile, done), hibernates: true, want: phaseStays},
		"falls asleep while it leaves": {spec: "d", status: "s", last: operation(migrate, failing), hibernates: true, want: phaseMigrate},
		"arrived, bound back":          {spec: "s", status: "d", last: operation(migrate, done), want: phaseRestore},
		"source given up by hand":      {spec: "d", status: "d", last: operation(migrate, corev1beta1.LastOperationStateAborted), want: phaseRestore},
		"restored, moves on":           {spec: "e", status: "d", last: operation(restore, done), want: phaseMigrate},
		"arrived":                      {spec: "d", status: "d", last: operation(migrate, done), want: phaseRestore},
		"binding set back":             {spec: "s", status: "s", last: operation(migrate, failing), want: phaseRestore},
		"restoring":                    {spec: "d", status: "d", last: operation(restore, failing), want: phaseRestore},
		"restored":                     {spec: "d", status: "d", last: operation(restore, done), want: phaseStays},
		"moves on while restoring":     {spec: "e", status: "d", last: operation(restore, failing), want: phaseRestore},
		"deleted":                      {spec: "s", status: "s", last: operation(migrate, done), deleting: true, want: phaseStays},
	} {
		shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{SeedName: ptr.To(test.spec)}, Status: corev1beta1.ShootStatus{LastOperation: test.last}}
		if !test.unready {
			shoot.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionTrue}}
		}
		if test.hibernates {
			shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)}
		}
		if test.status != "" {
			shoot.Status.SeedName = &test.status
		}
		if test.deleting {
			shoot.DeletionTimestamp = &metav1.Time{Time: now}
		}
		if got := phaseOf(shoot); got != test.want {
			t.Errorf("%s: %d instead of %d", name, got, test.want)
		}
	}
}

// TestLeaves moves Shoots of all kinds away. Nothing is left on the source except the objects in the cluster, and nothing goes before
// what needs it.
func TestLeaves(t *testing.T) {
	for name, change := range movingShoots() {
		t.Run(name, func(t *testing.T) {
			m := settledMover(t, change...)
			m.leaves()
			m.ends()
			if bundles, mrs := m.left(); len(bundles)+len(mrs) > 0 {
				t.Errorf("left: objects of %v, ManagedResources %v\n%s", bundles, mrs, m.text())
			}
			for _, fault := range slices.Concat(m.faults, m.simulation.faults) {
				t.Error(fault)
			}
		})
	}
}

// everyPasses is how many passes lie between two moments at which a binding is set back.
const everyPasses = 3

// TestReturns sets the binding back after each number of passes. The control plane is complete again where it was.
func TestReturns(t *testing.T) {
	for name, change := range movingShoots() {
		t.Run(name, func(t *testing.T) {
			settled := settledMover(t, change...)
			want, wantMRs := settled.left()
			if settled.in.asleepBefore() { // objects in the cluster are applied again when it wakes up
				wantMRs = slices.DeleteFunc(wantMRs, isOfShoot)
			}
			for passes := 1; passes < 60; passes += everyPasses {
				m := settled.copiedMover(t)
				m.leaves()
				for range passes {
					m.step()
				}
				ended := len(m.store.mrs) == 0
				m.in.Shoot.Spec.SeedName, m.in.Phase = ptr.To(sourceSeed), phaseRestore
				m.in.Entry.Spec.SeedName, m.in.Entry.Status.SeedName = ptr.To(sourceSeed), ptr.To(sourceSeed)
				m.in.Entry.Status.LastOperation = succeededAs(corev1beta1.LastOperationTypeRestore)
				m.ends()
				m.in.Phase = phaseStays
				m.ends()
				got, gotMRs := m.left()
				if m.in.asleepBefore() {
					gotMRs = slices.DeleteFunc(gotMRs, isOfShoot)
				}
				if !slices.Equal(got, want) || !slices.Equal(gotMRs, wantMRs) {
					t.Fatalf("after %d passes: objects of\n%v, ManagedResources\n%v, instead of\n%v\n%v\n%s", passes, got, gotMRs, want, wantMRs, m.text())
				}
				for key, each := range m.objects {
					if each.operation == "migrate" || each.confirmed {
						t.Fatalf("after %d passes: %s is still being given up: %+v", passes, key, each)
					}
				}
				if ended {
					break
				}
			}
		})
	}
}

// TestUnknownIsNotGivenUp checks that nothing that extensions have is deleted while it is not known whether they have given it up, and
// that a Shoot of a Seed without backups does not begin to leave.
func TestUnknownIsNotGivenUp(t *testing.T) {
	m := settledMover(t, withExtensions(lifecycles...), withOwnMachines)
	m.leaves()
	m.look()
	in := m.in
	in.Move.Known, in.Move.Kept = false, nil
	m.observe()
	in.Emitted = m.in.Emitted
	for _, tombstone := range planOf(t, in).Tombstones {
		if isOperation(tombstone.Name) && tombstone.Kept == "" || tombstone.Name == bundleResourceManager && tombstone.Kept == "" {
			t.Errorf("%s would be deleted", tombstone.Name)
		}
	}
	in.Seed = in.Seed.DeepCopy()
	in.Seed.Spec.Backup = nil
	if plan := planOf(t, in); len(plan.Tombstones)+len(plan.Bundles) > 0 || len(plan.Waits) != 1 || plan.Waits[0].Name != waitUnmovable {
		t.Errorf("without backups: %+v", plan)
	}
}
