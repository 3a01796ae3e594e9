package shoot

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// withWorkers adds workers to the Shoot, and a token for the scheduler.
func withWorkers(in *Inputs) {
	in.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}}
	in.Tokens[accessSecret(kubescheduler.Name)] = now.Add(time.Hour)
}

// contentsOf returns the table of contents by name. Plan refuses Shoots with workers.
func contentsOf(in Inputs) map[string]part {
	parts := map[string]part{}
	for _, each := range in.contents() {
		parts[each.name] = each
	}
	return parts
}

// TestScheduler checks that a Shoot with workers has a scheduler. It starts after the rollout of the API server, and stops
// before the API server.
func TestScheduler(t *testing.T) {
	for _, name := range []string{bundleScheduler, bundleSchedulerRBAC} {
		if _, found := contentsOf(known(t))[name]; found {
			t.Errorf("a Shoot without workers has %s", name)
		}
	}
	in := known(t, withWorkers)
	parts := contentsOf(in)
	scheduler := parts[bundleScheduler]
	if scheduler.unknown != "" || !waitsFor(in, scheduler, bundleAPIServer, resourcesv1alpha1.UntilRolledOut) {
		t.Errorf("the scheduler waits for %v: %s", scheduler.needs, scheduler.unknown)
	}
	objects, err := scheduler.objects()
	if err != nil {
		t.Fatal(err)
	}
	if rights := parts[bundleSchedulerRBAC]; rights.absent || rights.name == "" {
		t.Error("the scheduler has no permissions in the cluster")
	}
	access, err := parts[bundleAccess].objects()
	if err != nil {
		t.Fatal(err)
	}
	if last := access[len(access)-1]; last.GetName() != accessSecret(kubescheduler.Name) || replicasOf(schedulerIn(t, objects)) != 1 {
		t.Errorf("the last access Secret is %s", last.GetName())
	}
	waiting := known(t, withWorkers, func(in *Inputs) { delete(in.Tokens, accessSecret(kubescheduler.Name)) })
	if contentsOf(waiting)[bundleScheduler].unknown == "" {
		t.Error("the scheduler starts without a token")
	}

	in = known(t, withWorkers, hibernate)
	parts = contentsOf(in)
	if objects, err = parts[bundleScheduler].objects(); err != nil || replicasOf(schedulerIn(t, objects)) != 0 {
		t.Errorf("the scheduler runs while the Shoot hibernates: %v", err)
	}
	if !waitsFor(in, parts[bundleAPIServer], bundleScheduler, resourcesv1alpha1.UntilRolledOut) || !parts[bundleSchedulerRBAC].absent {
		t.Errorf("the API server stops after %v", parts[bundleAPIServer].needs)
	}
}

func replicasOf(deployment *appsv1.Deployment) int32 { return *deployment.Spec.Replicas }

// waitsFor reports whether a part depends on another one.
func waitsFor(in Inputs, of part, on string, until resourcesv1alpha1.DependencyUntil) bool {
	return slices.ContainsFunc(of.needs, func(need resourcesv1alpha1.Dependency) bool {
		return flow.Key{Namespace: need.Namespace, Name: need.Name} == in.key(on) && need.Until == until
	})
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
