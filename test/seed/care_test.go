package seed

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// careThreshold is how long failures are reported as Progressing.
const careThreshold = 2 * time.Second

// degrades makes the Pods of a component unready for a while. The condition of the Seed must report that after the
// threshold, and must recover afterwards.
func (w *world) degrades(name string) {
	w.Helper()
	w.setReady("etcd-druid", corev1.ConditionFalse)
	progressing := w.systemComponents(name, corev1beta1.ConditionProgressing)
	failed := w.systemComponents(name, corev1beta1.ConditionFalse)
	if after := failed.LastTransitionTime.Sub(progressing.LastTransitionTime.Time); after < careThreshold-time.Second { // times have no fractions
		w.Errorf("the condition was Progressing for %s, the threshold is %s", after, careThreshold)
	}
	w.setReady("etcd-druid", corev1.ConditionTrue)
	w.systemComponents(name, corev1beta1.ConditionTrue)
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
