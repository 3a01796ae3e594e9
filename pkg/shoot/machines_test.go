package shoot

import (
	"slices"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// TestMachinePrograms checks which Shoots have the programs for machines.
func TestMachinePrograms(t *testing.T) {
	registered := func(annotation string) func(*Inputs) {
		return func(in *Inputs) {
			in.Registrations = []corev1beta1.ControllerRegistration{{}}
			in.Registrations[0].Annotations = map[string]string{constants.AnnotationMachinesWithoutManager: annotation}
			in.Registrations[0].Spec.Resources = []corev1beta1.ControllerResource{{Kind: kindWorker, Type: "local"}}
		}
	}
	all := []string{bundleMachines, bundleMachinesRBAC, bundleClusterScaling, bundleClusterScalingShoot}
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   []string
	}{
		"defaults":                      {func(*Inputs) {}, all},
		"another registration":          {registered("false"), all},
		"machines of the extension":     {registered("true"), nil},
		"a fixed number of machines":    {func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Maximum = 1 }, all[:2]},
		"sets of machines not reported": {func(in *Inputs) { in.Machines.Deployments = nil }, all[:2]},
		"no workers":                    {func(in *Inputs) { in.Shoot.Spec.Provider.Workers = nil }, nil},
		"hibernating":                   {hibernate, all[:1]},
	} {
		var got []string
		for _, name := range bundlesOf(planOf(t, upWithWorkers(t, test.change))) {
			if slices.Contains(all, name) {
				got = append(got, name)
			}
		}
		want := slices.Clone(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestClusterScalingStops checks that the number of machines is not changed any more before machines are removed.
func TestClusterScalingStops(t *testing.T) {
	for name, change := range map[string]func(*Inputs){
		"hibernating": hibernate, "deleting": func(in *Inputs) { in.Deleting = true },
	} {
		found := false
		for _, tombstone := range planOf(t, upWithWorkers(t, change)).Tombstones {
			found = found || tombstone.Name == bundleClusterScaling && len(tombstone.After) == 0
		}
		if !found {
			t.Errorf("%s: cluster-autoscaler goes on", name)
		}
	}
}
