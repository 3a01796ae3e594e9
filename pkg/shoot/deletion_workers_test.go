package shoot

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/shoot/cleanup"
)

// observeMachines sets what extensions have reported: they finish an operation when its object is applied, unless they are broken.
func (s *simulation) observeMachines() {
	s.in.Machines = Machines{
		Finished: map[string]bool{}, UserData: map[string]string{}, Configs: map[string]extensionsv1alpha1.OperatingSystemConfig{},
	}
	for _, mr := range s.store.all() {
		if !isNodeOperation(mr.Name) || !answered(mr) || s.broken[mr.Name] {
			continue
		}
		key := flow.Key{Namespace: mr.Namespace, Name: mr.Name}
		live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
		asked, _, err := live.Choice(s.in.Owner, key, choiceAskedFor)
		if err != nil {
			s.Fatal(err)
		}
		s.in.Machines.Finished[mr.Name] = asked == s.in.generation()
		if mr.Name == bundleWorker {
			s.in.Machines.Deployments = []extensionsv1alpha1.MachineDeployment{{Name: "shoot--dev--one-a-z1", Minimum: 1, Maximum: 2}}
		}
		if of, is := strings.CutPrefix(mr.Name, prefixOperatingSystem); is {
			s.in.Machines.UserData[of] = "osc-result-" + of
			s.in.Machines.Configs[of] = extensionsv1alpha1.OperatingSystemConfig{}
		}
	}
}

// precedesOfNodes is precedes for the bundles of nodes. It repeats the order of docs/workers.md.
func (s *simulation) precedesOfNodes(name string) []string {
	switch {
	case name == bundleInfrastructure:
		return []string{bundleControlPlane, bundleNetwork, bundleWorker, bundleAPIServer}
	case name == bundleControlPlane:
		return []string{bundleNetwork, bundleWorker}
	case name == bundleNetwork, name == bundleNodeAgent, strings.HasPrefix(name, prefixOperatingSystem):
		return []string{bundleWorker}
	case name == bundleAPIServer, name == bundleResourceManager, name == bundleControllerManager:
		return []string{bundleControlPlane, bundleNetwork, bundleWorker}
	}
	return nil
}

// TestDeletionEndsWithWorkers deletes Shoots with workers in all states of their control planes and of their extensions.
func TestDeletionEndsWithWorkers(t *testing.T) {
	awake := newSimulation(t, known(t, withExtensions("after-after"), withWorkers))
	awake.settle()
	all := stories()
	for _, name := range []string{bundleInfrastructure, bundleControlPlane, bundleNetwork, bundleWorker} {
		all = append(all, story{name: name + " never worked", born: []string{name}}, story{name: name + " never worked, forced", born: []string{name}, forced: true})
	}
	for _, story := range all {
		t.Run(story.name, func(t *testing.T) {
			s := awake.live(t, story)
			s.delete(story)
		})
	}
	if awake.store.mrs[client.ObjectKey(awake.in.key(bundleWorker))] == nil {
		t.Error("the Shoot had no Worker")
	}
}

// TestVolumesBeforeMachines checks that the deletion of a Shoot with workers waits for users' volumes before it deletes machines or their
// control plane, and that a Shoot without workers has no such stage.
func TestVolumesBeforeMachines(t *testing.T) {
	deleting := func(in *Inputs) {
		in.Deleting = true
		done(in, taskCleanUpBegins, cleanup.StageWebhooks, cleanup.StageExtendedAPIs, cleanup.StageResources)
	}
	plan := planOf(t, upWithWorkers(t, deleting))
	if len(plan.Tasks) != 1 || plan.Tasks[0].Name != cleanup.StageVolumes {
		t.Errorf("the tasks are %v", plan.Tasks)
	}
	for _, tombstone := range plan.Tombstones {
		if tombstone.Name == bundleWorker || tombstone.Name == bundleControlPlane {
			t.Errorf("%s is deleted before the volumes", tombstone.Name)
		}
	}
	if plan := planOf(t, up(t, deleting)); len(plan.Tasks) != 0 {
		t.Errorf("without workers, the tasks are %v", plan.Tasks)
	}
}
