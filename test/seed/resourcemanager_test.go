package seed

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
	"github.com/trellis-k8s/trellis/test/kit"
)

const resourceManager = "gardener-resource-manager"

// TestResourceManagerComesBack: a seed's resource-manager loses its Deployment and its rights, and no longer runs.
// The gardenlet, with the rights of its chart, applies it once and then leaves it alone. The Pods are simulated here.
// A process takes their place.
func TestResourceManagerComesBack(t *testing.T) {
	w := newWorld(t)
	const name, config = "broken", "leaderElection: {resourceNamespace: garden}\ncontrollers: {resourceClass: seed}"
	manager := kit.StartManager(t, w.seeds.Kubeconfig(), nil, config)
	w.declare(name)
	w.install(name)
	w.extensions()
	clk := clocktesting.NewFakeClock(time.Now())
	_, toSeed, _ := w.gardenletWith(name, clk)
	w.eventually(name, corev1beta1.LastOperationStateSucceeded, "", "")
	w.systemComponents(name, corev1beta1.ConditionTrue)
	quiet(t, toSeed)
	uid := w.deployment().UID

	manager.Stop()
	toSeed.Forget()
	deployment := w.deployment()
	kit.Must(t, w.seed.Delete(t.Context(), deployment, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: resourceManager + "-seed"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resourceManager + "-seed"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: resourceManager}},
	} {
		kit.Must(t, w.seed.Delete(t.Context(), object))
	}
	kit.EventuallyTrue(t, "the Deployment is deleted", func() bool { return w.deployment() == nil })
	quiet(t, toSeed)
	if sent := writes(toSeed); len(sent) > 0 {
		t.Errorf("before the time limit, gardenlet wrote %v", sent)
	}

	clk.Step(breakglass.DefaultStaleAfter + time.Minute)
	kit.EventuallyTrue(t, "the Deployment is restored, and its Pods are ready", func() bool {
		deployment := w.deployment()
		return deployment != nil && deployment.UID != uid && deployment.Status.ReadyReplicas > 0
	})
	for _, object := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		kit.Must(t, w.seed.Get(t.Context(), client.ObjectKey{Name: resourceManager + "-seed"}, object))
	}
	kit.Must(t, w.seed.Get(t.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: resourceManager}, &corev1.ServiceAccount{}))
	kit.EventuallyTrue(t, "an Event reports it", func() bool {
		var events eventsv1.EventList
		kit.Must(t, w.seed.List(t.Context(), &events, client.InNamespace(constants.GardenNamespace)))
		for _, event := range events.Items {
			if event.Reason == breakglass.ReasonApplied && event.Regarding.Name == resourceManager {
				return true
			}
		}
		return false
	})
	quiet(t, toSeed)
	t.Logf("gardenlet applied the resource-manager: %v", writes(toSeed))
	toSeed.Forget()
	uid = w.deployment().UID

	kit.StartManager(t, w.seeds.Kubeconfig(), nil, config)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: resourceManager}}
	kit.Change(t, w.seed, mr, func() {
		metav1.SetMetaDataAnnotation(&mr.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationReconcile)
	})
	kit.Eventually(t, "the resource-manager has taken over the objects that gardenlet applied", func() string {
		kit.Must(t, w.seed.Get(t.Context(), client.ObjectKeyFromObject(mr), mr))
		healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
		if mr.Annotations[constants.AnnotationGardenerOperation] != "" || healthy.Status != resourcesv1alpha1.ConditionTrue {
			return w.bundles()
		}
		return ""
	})
	quiet(t, toSeed)
	if deployment := w.deployment(); deployment == nil || deployment.UID != uid {
		t.Error("the Deployment was replaced by the resource-manager")
	}
	if sent := writes(toSeed); len(sent) > 0 {
		t.Errorf("after the repair, gardenlet wrote %v", sent)
	}
}

// deployment returns the Deployment of the resource-manager, or nil if it does not exist.
func (w *world) deployment() *appsv1.Deployment {
	w.Helper()
	deployment := &appsv1.Deployment{}
	err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: resourceManager}, deployment)
	if err != nil {
		kit.Must(w, client.IgnoreNotFound(err))
		return nil
	}
	return deployment
}
