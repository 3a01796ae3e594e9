package shoot

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// worker returns the simulated Worker, and the operation that its extension has finished.
func (m *mover) worker() (found simulated, answered string, exists bool) {
	key := object.Key{Group: extensionsv1alpha1.GroupName, Kind: kindWorker, Namespace: m.in.Namespace, Name: m.in.Shoot.Name}
	found, exists = m.objects[key]
	return found, m.answered[key], exists
}

// managerRuns reports whether machine-controller-manager can work on machines.
func (m *mover) managerRuns() bool {
	_, exists := m.objects[object.Key{Group: "apps", Kind: "Deployment", Namespace: m.in.Namespace, Name: bundleMachines}]
	return exists && !m.stopped[bundleMachines]
}

// lookAtMachines sets the inputs about machines that move.
func (m *mover) lookAtMachines() {
	machines := MovedMachines{}
	worker, answered, exists := m.worker()
	if m.in.Phase == phaseMigrate && m.in.hasManager() {
		stopped := true
		for _, mr := range m.store.all() {
			stopped = stopped && mr.Name != bundleMachines && mr.Name != bundleClusterScaling
		}
		machines.GivenUp = stopped && (!exists || answered == constants.OperationMigrate)
		if !machines.GivenUp {
			m.in.Move.Kept[bundleWorker] = "the state of its machines is not stored"
		}
		if !m.released {
			machines.Left = "Machine a"
		}
	}
	if m.in.Phase == phaseRestore && exists {
		given := worker.operation == constants.OperationMigrate || answered == constants.OperationMigrate
		machines.Restored = !given && worker.operation != constants.OperationWaitForState && (worker.operation != constants.OperationRestore || answered == worker.operation)
	}
	m.in.Move.Machines = machines
}

// moveMachines deletes the objects for machines on the source, and creates them where the extension restores them.
func (m *mover) moveMachines() bool {
	if !m.in.hasManager() {
		return false
	}
	machines := m.in.Move.Machines
	_, _, exists := m.worker()
	switch {
	case m.in.Phase == phaseMigrate && machines.GivenUp && !m.released:
		if m.managerRuns() {
			m.faults = append(m.faults, "the objects for machines are deleted while machine-controller-manager runs")
		}
		m.released = true
		return true
	case m.in.Phase == phaseMigrate && !exists && !m.released:
		m.faults = append(m.faults, "the Worker is deleted before the objects for machines")
	case m.in.Phase == phaseRestore && machines.Restored:
		m.released = false
	case m.in.Phase == phaseRestore && m.released && m.managerRuns():
		m.faults = append(m.faults, "machine-controller-manager runs before the machines are restored")
	}
	return false
}

// TestMachinesArrive checks that the state of machines is that of the Worker, that the programs for machines wait for it, and that a second
// restoration is not requested.
func TestMachinesArrive(t *testing.T) {
	m := arriving(t, withWorkers)
	m.released = true
	m.in.Move.States = append(m.in.Move.States, corev1beta1.ExtensionResourceState{Kind: kindWorker, Name: ptr.To(m.in.Shoot.Name), State: m.in.Move.States[0].State})
	m.copiesBackups()
	preserved := false
	for range 200 {
		m.step()
		_, scales := m.objects[object.Key{Group: "apps", Kind: "Deployment", Namespace: m.in.Namespace, Name: bundleClusterScaling}]
		if scales && !m.in.Move.Machines.Restored {
			t.Fatal("cluster-autoscaler runs before the machines are restored")
		}
		if text := texts(t, m.result.Plan)[bundleMachines]; !m.in.Move.Machines.Restored && text != "" {
			preserved = strings.Contains(text, `"replicas":0`) && strings.Contains(text, "preserve-replicas")
		}
	}
	worker, _, _ := m.worker()
	if !preserved || !m.waited[m.in.Shoot.Name] || !m.managerRuns() || worker.operation != constants.OperationReconcile || len(m.faults) > 0 {
		t.Errorf("the machines are not restored once: preserved %t, with their state %t, manager %t, operation %s, %v\n%s",
			preserved, m.waited[m.in.Shoot.Name], m.managerRuns(), worker.operation, m.faults, m.text())
	}
}
