package shoot

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// scaled switches the Vertical Pod Autoscaler of the cluster on.
func scaled(in *Inputs) {
	in.Shoot.Spec.Kubernetes.VerticalPodAutoscaler = &corev1beta1.VerticalPodAutoscaler{Enabled: true}
	for _, account := range vpa.Programs() {
		in.Tokens[accessSecret(account)] = now.Add(time.Hour)
	}
}

// emittedAll makes all bundles of a Shoot with a change exist.
func emittedAll(t *testing.T, change func(*Inputs)) func(*Inputs) {
	t.Helper()
	var all []flow.Key
	for _, bundle := range planOf(t, known(t, withWorkers, reporting, change)).Bundles {
		all = append(all, bundle.Key)
	}
	slices.SortFunc(all, flow.Key.Compare)
	return func(in *Inputs) { in.Emitted = all }
}

// TestScaling checks that the autoscaler waits for its tokens, that it does not run while the Shoot hibernates, and that it is removed when
// it is switched off.
func TestScaling(t *testing.T) {
	removed := func(in Inputs) []string {
		var names []string
		for _, tombstone := range planOf(t, in).Tombstones {
			names = append(names, tombstone.Name)
		}
		return names
	}
	exists := emittedAll(t, scaled)
	in := upWithWorkers(t, scaled, exists)
	if got := bundlesOf(planOf(t, in)); !slices.Contains(got, bundleScaling) || !slices.Contains(got, bundleScalingInShoot) {
		t.Errorf("the plan has %v", got)
	}
	delete(in.Tokens, accessSecret(vpa.Programs()[0]))
	if got := bundlesOf(planOf(t, in)); slices.Contains(got, bundleScaling) || !slices.Contains(got, bundleScalingInShoot) {
		t.Errorf("without a token, the plan has %v", got)
	}
	if got := removed(upWithWorkers(t, exists)); !slices.Equal(got, []string{bundleScaling, bundleScalingInShoot}) {
		t.Errorf("%v are removed when it is switched off", got)
	}
	if got := removed(upWithWorkers(t, scaled, exists, hibernate)); !slices.Contains(got, bundleScaling) || slices.Contains(got, bundleScalingInShoot) {
		t.Errorf("%v are removed when the Shoot hibernates", got)
	}
}

// TestBiggestMachine checks the default of the most resources that are recommended.
func TestBiggestMachine(t *testing.T) {
	in := known(t, withWorkers)
	if got := in.biggestMachine(); len(got) > 0 {
		t.Errorf("of an unknown machine type: %v", got)
	}
	second := in.Shoot.Spec.Provider.Workers[0].DeepCopy()
	second.Name, second.Machine.Type = "b", "large"
	in.Shoot.Spec.Provider.Workers = append(in.Shoot.Spec.Provider.Workers, *second)
	of := func(name, cpu, memory string) corev1beta1.MachineType {
		return corev1beta1.MachineType{Name: name, CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory)}
	}
	in.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{of("small", "8", "16Gi"), of("large", "4", "64Gi"), of("huge", "64", "1Ti")}
	got := in.biggestMachine()
	if cpu, memory := got[corev1.ResourceCPU], got[corev1.ResourceMemory]; cpu.String() != "8" || memory.String() != "64Gi" {
		t.Errorf("%v", got)
	}
}

// TestDeletionEndsWithScaling deletes a Shoot whose cluster has the Vertical Pod Autoscaler.
func TestDeletionEndsWithScaling(t *testing.T) {
	s := newSimulation(t, known(t, withWorkers, scaled))
	s.settle()
	if s.store.mrs[client.ObjectKey(s.in.key(bundleScaling))] == nil {
		t.Fatal("the Shoot has no autoscaler")
	}
	story := stories()[0]
	s.live(t, story).delete(story)
}
