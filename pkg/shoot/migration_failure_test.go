package shoot

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// everyWrites is the distance of the writes that fail, for kinds of Shoots with many of them.
const everyWrites = 13

// TestWritesFail lets each write of a move fail once. The next pass continues: at the end nothing is left on the source, and nothing
// went before what needs it.
func TestWritesFail(t *testing.T) {
	for name, change := range movingShoots() {
		t.Run(name, func(t *testing.T) {
			settled := settledMover(t, change...)
			every := everyWrites
			if name == "without workers" {
				every = 1
			}
			for failAt, writes := 1, 1; failAt <= writes; failAt += every {
				m := settled.copiedMover(t)
				m.store.failAt = failAt
				m.leaves()
				m.ends()
				if bundles, mrs := m.left(); len(bundles)+len(mrs) > 0 {
					t.Fatalf("after the failure of write %d: objects of %v, ManagedResources %v are left\n%s", failAt, bundles, mrs, m.text())
				}
				for _, fault := range slices.Concat(m.faults, m.simulation.faults) {
					t.Fatalf("after the failure of write %d: %s", failAt, fault)
				}
				writes = m.store.writes
			}
		})
	}
}

// TestWritesFailOnArrival lets writes of a restoration fail. The control plane is complete in the end.
func TestWritesFailOnArrival(t *testing.T) {
	for failAt, writes := 1, 1; failAt <= writes; failAt += everyWrites {
		m := arriving(t, withExtensions("before-after", "after-before"))
		m.copiesBackups()
		m.store.failAt = failAt
		m.ends()
		if !m.works(bundleControllerManager) || m.choices(bundleEtcdMain)[choiceRestoring] == "" || !m.waited["before-after"] {
			t.Fatalf("after the failure of write %d, the control plane is not complete:\n%s", failAt, m.text())
		}
		writes = m.store.writes
	}
}

// TestNothingBeginsWithoutData checks that etcd is never created with other data than those that it had.
func TestNothingBeginsWithoutData(t *testing.T) {
	m := arriving(t)
	m.in.Seed = m.in.Seed.DeepCopy()
	m.in.Seed.Spec.Backup = nil
	if plan := planOf(t, m.in); len(plan.Bundles)+len(plan.Tombstones) > 0 || len(plan.Waits) != 1 || plan.Waits[0].Name != waitUnmovable {
		t.Errorf("a Seed without backups: %d bundles, %+v", len(plan.Bundles), plan.Waits)
	}
	for name, change := range map[string]func(*mover){
		"of an earlier move": func(m *mover) { m.in.Move.Source.Spec.BucketName = "earlier" },
		"of this Seed":       func(m *mover) { m.in.Move.Source.Spec.BucketName = string(m.in.Seed.UID) },
	} {
		m := arriving(t)
		before := m.in.Entry
		m.copiesBackups()
		m.in.Entry = before
		change(m)
		m.ends()
		if m.exists("EtcdCopyBackupsTask") || m.works(bundleEtcdMain) || !strings.Contains(m.in.unknownSource(), "an earlier move") {
			t.Errorf("backups %s are copied:\n%s", name, m.text())
		}
	}
	leaving := settledMover(t)
	leaving.leaves()
	leaving.look()
	leaving.observe()
	leaving.in.Move.Source = &corev1beta1.BackupEntry{}
	if plan := planOf(t, leaving.in); len(plan.Bundles)+len(plan.Tombstones) > 0 || len(plan.Waits) != 1 || plan.Waits[0].Name != waitPrevious {
		t.Errorf("with the backups of an earlier move: %d bundles, %d tombstones, %+v", len(plan.Bundles), len(plan.Tombstones), plan.Waits)
	}
	if backup := leaving.in.backup("main"); !backup.Restore {
		t.Error("the last snapshot could be one of an empty database")
	}
}

// TestStoppedMoveStays checks that nothing is deleted while the operations of a Shoot that moves are stopped.
func TestStoppedMoveStays(t *testing.T) {
	m := settledMover(t)
	shoot := m.in.Shoot.DeepCopy()
	shoot.Spec.SeedName, shoot.Status.LastOperation.Type = ptr.To(destinationSeed), corev1beta1.LastOperationTypeMigrate
	p := &pass{reconciler: reporter(t), shoot: shoot, seed: m.in.Seed}
	if p.maintains() {
		t.Error("a control plane that leaves its Seed is maintained")
	}
}
