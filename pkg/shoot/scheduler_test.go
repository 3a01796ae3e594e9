package shoot

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// withWorkers adds workers to the Shoot, and a token for the scheduler.
func withWorkers(in *Inputs) {
	in.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{{
		Name: "a", Minimum: 1, Maximum: 2, Machine: corev1beta1.Machine{Type: "small", Image: &corev1beta1.ShootMachineImage{Name: "linux", Version: ptr.To("1.0.0")}},
	}}
	in.Shoot.Spec.Networking = &corev1beta1.Networking{Type: ptr.To("local")}
	for _, account := range []string{kubescheduler.Name, machinecontrollermanager.Name, clusterautoscaler.Name} {
		in.Tokens[accessSecret(account)] = now.Add(time.Hour)
	}
}

// contentsOf returns the table of contents by name.
func contentsOf(in Inputs) map[string]table.Part {
	parts := map[string]table.Part{}
	for _, each := range in.contents().Parts {
		parts[each.Name] = each
	}
	return parts
}

// TestScheduler checks that a Shoot with workers has a scheduler. It starts after the rollout of the API server, and stops
// before the API server.
func TestScheduler(t *testing.T) {
	for _, name := range []string{bundleScheduler, bundleSchedulerRBAC} {
		if contentsOf(known(t))[name].Absent == "" {
			t.Errorf("a Shoot without workers has %s", name)
		}
	}
	in := known(t, withWorkers)
	parts := contentsOf(in)
	scheduler := parts[bundleScheduler]
	if scheduler.Unknown != "" || !waitsFor(in, scheduler, bundleAPIServer, resourcesv1alpha1.UntilRolledOut) {
		t.Errorf("the scheduler waits for %v: %s", scheduler.Needs, scheduler.Unknown)
	}
	objects, err := scheduler.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if rights := parts[bundleSchedulerRBAC]; rights.Absent != "" || rights.Unchanged || rights.Name == "" {
		t.Error("the scheduler has no permissions in the cluster")
	}
	access, err := parts[bundleAccess].Objects()
	if err != nil {
		t.Fatal(err)
	}
	if last := access[len(access)-1]; last.GetName() != accessSecret(kubescheduler.Name) || replicasOf(schedulerIn(t, objects)) != 1 {
		t.Errorf("the last access Secret is %s", last.GetName())
	}
	waiting := known(t, withWorkers, func(in *Inputs) { delete(in.Tokens, accessSecret(kubescheduler.Name)) })
	if contentsOf(waiting)[bundleScheduler].Unknown == "" {
		t.Error("the scheduler starts without a token")
	}

	in = known(t, withWorkers, hibernate)
	parts = contentsOf(in)
	if objects, err = parts[bundleScheduler].Objects(); err != nil || replicasOf(schedulerIn(t, objects)) != 0 {
		t.Errorf("the scheduler runs while the Shoot hibernates: %v", err)
	}
	if !waitsFor(in, parts[bundleAPIServer], bundleScheduler, resourcesv1alpha1.UntilRolledOut) || !parts[bundleSchedulerRBAC].Unchanged {
		t.Errorf("the API server stops after %v", parts[bundleAPIServer].NeedsAsleep)
	}
}

func replicasOf(deployment *appsv1.Deployment) int32 { return *deployment.Spec.Replicas }

// waitsFor reports whether a part depends on another one.
func waitsFor(in Inputs, part table.Part, on string, until resourcesv1alpha1.DependencyUntil) bool {
	needs := part.Needs
	if in.hibernated() {
		needs = part.NeedsAsleep
	}
	return slices.ContainsFunc(needs, func(need table.Need) bool { return slices.Contains(need.Parts, on) && need.Until == until })
}

// schedulerIn returns the Deployment among the objects of the scheduler's bundle.
func schedulerIn(t *testing.T, objects []client.Object) *appsv1.Deployment {
	t.Helper()
	for _, object := range objects {
		if deployment, is := object.(*appsv1.Deployment); is {
			return deployment
		}
	}
	t.Fatalf("no Deployment among %d objects", len(objects))
	return nil
}
