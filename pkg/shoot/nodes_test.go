package shoot

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// reporting sets what extensions report for nodes.
func reporting(in *Inputs) {
	in.Machines = Machines{
		Finished: map[string]bool{bundleInfrastructure: true, bundleControlPlane: true, bundleNetwork: true, bundleWorker: true},
		Infrastructure: &extensionsv1alpha1.InfrastructureStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{
			ProviderStatus: &runtime.RawExtension{Raw: []byte(`{"network":"net-1"}`)},
		}},
		Deployments: []extensionsv1alpha1.MachineDeployment{{Name: "shoot--dev--one-a-z1", Minimum: 1, Maximum: 2}},
		UserData:    map[string]string{}, Configs: map[string]extensionsv1alpha1.OperatingSystemConfig{},
	}
	pools, _ := in.pools()
	for _, pool := range pools {
		key := pool.Key()
		in.Machines.Finished[prefixOperatingSystem+key] = true
		in.Machines.UserData[key] = "osc-result-" + key
		in.Machines.Configs[key] = extensionsv1alpha1.OperatingSystemConfig{}
	}
}

// upWithWorkers returns the inputs of a Shoot with workers if all its bundles exist.
func upWithWorkers(t *testing.T, change ...func(*Inputs)) Inputs {
	t.Helper()
	in := known(t, withWorkers, reporting)
	for _, bundle := range planOf(t, in).Bundles {
		in.Emitted = append(in.Emitted, bundle.Key)
	}
	slices.SortFunc(in.Emitted, flow.Key.Compare)
	placed(&in)
	for _, each := range change {
		each(&in)
	}
	in.Secrets = material(in)
	return in
}

// otherImage changes the machine image, which replaces all machines.
func otherImage(in *Inputs) {
	in.Shoot.Spec.Provider.Workers[0].Machine.Image.Version = ptr.To("2.0.0")
}

func TestPlansWithWorkers(t *testing.T) {
	inside := func(key flow.Key) bool { return isOfShoot(key.Name) }
	for name, in := range map[string]Inputs{
		"50-nodes-new":            known(t, withWorkers),
		"51-nodes-infrastructure": known(t, withWorkers, func(in *Inputs) { reporting(in); in.Machines.Finished = map[string]bool{bundleInfrastructure: true} }),
		"52-nodes-ready":          upWithWorkers(t),
		"53-nodes-rolling":        upWithWorkers(t, otherImage, func(in *Inputs) { in.Machines.Finished = map[string]bool{} }),
		"54-nodes-rolled":         upWithWorkers(t, otherImage, reporting),
		"55-nodes-hibernating":    upWithWorkers(t, hibernate),
		"56-nodes-deleting":       upWithWorkers(t, func(in *Inputs) { in.Deleting = true }),
		"57-nodes-cleaned":        upWithWorkers(t, cleaned, func(in *Inputs) { in.Deleting = true }),
		"58-nodes-deleting-control-plane": upWithWorkers(t, cleaned, func(in *Inputs) {
			in.Deleting, in.Emitted = true, slices.DeleteFunc(in.Emitted, inside)
		}),
		"59-nodes-deletion-forced": upWithWorkers(t, forced),
		"60-nodes-scaled":          upWithWorkers(t, scaled),
		"61-nodes-scaled-deleting": upWithWorkers(t, scaled, emittedAll(t, scaled), func(in *Inputs) { in.Deleting = true }),
	} {
		t.Run(name, func(t *testing.T) { compare(t, name, summary(t, planOf(t, in))) })
	}
}

// TestExtensionsWithWorkers checks that a Shoot with workers has its Extensions, also those that support no Shoot without workers, and
// that those with the lifecycle AfterWorker wait for the machines.
func TestExtensionsWithWorkers(t *testing.T) {
	in := known(t, withExtensions("after-before", "workers-before"), withWorkers, reporting)
	in.Registrations[0].Spec.Resources[0].WorkerlessSupported = nil
	in.Shoot.Spec.Extensions = append(in.Shoot.Spec.Extensions, corev1beta1.Extension{Type: in.Registrations[0].Spec.Resources[0].Type})
	waiting := map[string]bool{}
	for _, bundle := range planOf(t, in).Bundles {
		if kind, is := strings.CutPrefix(bundle.Name, prefixExtension); is {
			waiting[kind] = slices.ContainsFunc(bundle.Spec.DependsOn, func(need resourcesv1alpha1.Dependency) bool {
				return need.Name == bundleWorker && need.Until == resourcesv1alpha1.UntilHealthy
			})
		}
	}
	want := map[string]bool{"after-before": false, "workers-before": true, in.Registrations[0].Spec.Resources[0].Type: false}
	if !maps.Equal(waiting, want) {
		t.Errorf("the Extensions wait for the machines: %v, want %v", waiting, want)
	}
}

// TestOldConfigsStay checks that the configuration of machines that are being replaced is kept until the extension has replaced them.
func TestOldConfigsStay(t *testing.T) {
	in := upWithWorkers(t)
	pools, err := in.pools()
	if err != nil {
		t.Fatal(err)
	}
	old := prefixOperatingSystem + pools[0].Key()
	otherImage(&in)
	removed := func() bool {
		return slices.ContainsFunc(planOf(t, in).Tombstones, func(tombstone flow.Tombstone) bool { return tombstone.Name == old })
	}
	in.Machines.Finished = map[string]bool{}
	if removed() {
		t.Error("the configuration is removed while machines have it")
	}
	in.Machines.Finished = map[string]bool{bundleWorker: true}
	image := in.Shoot.Spec.Provider.Workers[0].Machine.Image
	in.Shoot.Spec.Provider.Workers[0].Machine.Image = nil
	if removed() {
		t.Error("the configuration is removed although the declared pools are invalid")
	}
	in.Shoot.Spec.Provider.Workers[0].Machine.Image = image
	reporting(&in)
	if !removed() {
		t.Error("the configuration stays although no machine has it")
	}
}

// TestInvalidWorkersAreReported checks that errors of the declaration name the field, and concern only the parts of nodes.
func TestInvalidWorkersAreReported(t *testing.T) {
	for want, change := range map[string]func(*Inputs){
		"spec.provider.workers[0]: machine.image has no version": func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Machine.Image = nil },
		"spec.networking.type is required":                       func(in *Inputs) { in.Shoot.Spec.Networking = &corev1beta1.Networking{} },
	} {
		var found bool
		plan := planOf(t, known(t, withWorkers, change))
		for _, wait := range plan.Waits {
			found = found || strings.Contains(wait.Reason, want)
		}
		if !found {
			t.Errorf("no wait contains %q: %+v", want, plan.Waits)
		}
		if !slices.ContainsFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Name == bundleAPIServer }) {
			t.Errorf("%s: the API server is held", want)
		}
	}
}
