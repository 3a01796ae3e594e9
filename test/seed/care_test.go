package seed

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// careThreshold is how long failures are reported as Progressing.
const careThreshold = 2 * time.Second

// degrades makes the Pods of a component unready for a while. The condition of the Seed must report that after the
// threshold, and must recover afterwards, although ManagedResources of a Shoot, which do not count, fail all the time.
func (w *world) degrades(name string) {
	w.Helper()
	remove := w.failingShoot()
	w.setReady("etcd-druid", corev1.ConditionFalse)
	progressing := w.systemComponents(name, corev1beta1.ConditionProgressing)
	failed := w.systemComponents(name, corev1beta1.ConditionFalse)
	if after := failed.LastTransitionTime.Sub(progressing.LastTransitionTime.Time); after < careThreshold-time.Second { // times have no fractions
		w.Errorf("the condition was Progressing for %s, the threshold is %s", after, careThreshold)
	}
	w.setReady("etcd-druid", corev1.ConditionTrue)
	w.systemComponents(name, corev1beta1.ConditionTrue)
	remove()
}

// failingShoot creates ManagedResources that the flows of Shoots, network policies and backups emit into namespace garden,
// and that cannot be applied. It returns a function that deletes them.
func (w *world) failingShoot() (remove func()) {
	w.Helper()
	var all []*resourcesv1alpha1.ManagedResource
	for name, from := range map[string]string{
		"shoot--dev--broken": "shoot", "network-policies-shoot--dev--broken": "network-policies", "shoot--dev--broken--backup": "backupentry",
	} {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
			Namespace: constants.GardenNamespace, Name: name, Labels: map[string]string{flow.LabelFlow: from, flow.LabelOwner: "broken"},
		}}
		mr.Spec.Class = ptr.To("seed")
		mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "missing"}}
		kit.Must(w, w.seed.Create(w.Context(), mr))
		all = append(all, mr)
		kit.Eventually(w, name+" fails", func() string {
			kit.Must(w, w.seed.Get(w.Context(), client.ObjectKeyFromObject(mr), mr))
			if applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); applied.Status != resourcesv1alpha1.ConditionFalse {
				return fmt.Sprintf("%+v", mr.Status)
			}
			return ""
		})
	}
	return func() {
		w.Helper()
		for _, mr := range all {
			kit.Must(w, w.seed.Delete(w.Context(), mr))
			kit.EventuallyTrue(w, mr.Name+" is deleted", func() bool {
				return apierrors.IsNotFound(w.seed.Get(w.Context(), client.ObjectKeyFromObject(mr), mr))
			})
		}
	}
}

// setReady makes the Pods of a Deployment ready or unready.
func (w *world) setReady(deployment string, status corev1.ConditionStatus) {
	w.Helper()
	of, pods := &appsv1.Deployment{}, &corev1.PodList{}
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: deployment}, of))
	kit.Must(w, w.seed.List(w.Context(), pods, client.InNamespace(of.Namespace), client.MatchingLabels(of.Spec.Selector.MatchLabels)))
	for i := range pods.Items {
		patch := client.StrategicMergeFrom(pods.Items[i].DeepCopy())
		for j := range pods.Items[i].Status.Conditions {
			if condition := &pods.Items[i].Status.Conditions[j]; condition.Type == corev1.PodReady {
				condition.Status = status
			}
		}
		kit.Must(w, w.seed.Status().Patch(w.Context(), &pods.Items[i], patch))
	}
}

// systemComponents waits until the condition of the system components has a status.
func (w *world) systemComponents(name string, want corev1beta1.ConditionStatus) (found corev1beta1.Condition) {
	w.Helper()
	kit.Eventually(w, "SeedSystemComponentsHealthy is "+string(want), func() string {
		for _, condition := range w.get(name).Status.Conditions {
			if condition.Type == corev1beta1.SeedSystemComponentsHealthy {
				found = condition
			}
		}
		if found.Status != want {
			return fmt.Sprintf("%+v\n%s", found, w.bundles())
		}
		return ""
	})
	return found
}
