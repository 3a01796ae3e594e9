package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// moment is an event and its time.
type moment struct {
	at   time.Time
	what string
}

// Timeline returns the events in the control plane of a Shoot since its creation, one per line, in the order of time: when
// its ManagedResources were created, applied and healthy, and when its Pods were scheduled, started and ready. Times have a
// resolution of one second, like those of API servers.
func (f *Fleet) Timeline(ctx context.Context, key client.ObjectKey) ([]string, error) {
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(ctx, key, shoot); err != nil {
		return nil, fmt.Errorf("read Shoot %s: %w", key, err)
	}
	var bundles resourcesv1alpha1.ManagedResourceList
	if err := f.base.List(ctx, &bundles, client.InNamespace(shoot.Status.TechnicalID)); err != nil {
		return nil, fmt.Errorf("list the ManagedResources of Shoot %s: %w", key, err)
	}
	var pods corev1.PodList
	if err := f.base.List(ctx, &pods, client.InNamespace(shoot.Status.TechnicalID)); err != nil {
		return nil, fmt.Errorf("list the Pods of Shoot %s: %w", key, err)
	}
	var moments []moment
	for i := range bundles.Items {
		moments = append(moments, momentsOfBundle(&bundles.Items[i])...)
	}
	for i := range pods.Items {
		moments = append(moments, momentsOfPod(&pods.Items[i])...)
	}
	if last := shoot.Status.LastOperation; last != nil {
		moments = append(moments, moment{last.LastUpdateTime.Time, fmt.Sprintf("Shoot: %s %s", last.Type, last.State)})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	lines := make([]string, 0, len(moments))
	for _, each := range moments {
		lines = append(lines, fmt.Sprintf("%4.0f s  %s", each.at.Sub(shoot.CreationTimestamp.Time).Seconds(), each.what))
	}
	return lines, nil
}

func momentsOfBundle(mr *resourcesv1alpha1.ManagedResource) []moment {
	moments := []moment{{mr.CreationTimestamp.Time, "ManagedResource " + mr.Name + " created"}}
	for _, each := range []struct {
		condition resourcesv1alpha1.ConditionType
		status    resourcesv1alpha1.ConditionStatus
		what      string
	}{
		{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, "applied"},
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, "healthy"},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse, "rolled out"},
	} {
		if condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, each.condition); condition.Status == each.status {
			moments = append(moments, moment{condition.LastTransitionTime.Time, "ManagedResource " + mr.Name + " " + each.what})
		}
	}
	return moments
}

func momentsOfPod(pod *corev1.Pod) []moment {
	moments := []moment{{pod.CreationTimestamp.Time, "Pod " + pod.Name + " created"}}
	add := func(at metav1.Time, what string) {
		moments = append(moments, moment{at.Time, "Pod " + pod.Name + " " + what})
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case corev1.PodScheduled:
			add(condition.LastTransitionTime, "scheduled")
		case corev1.PodReady:
			add(condition.LastTransitionTime, "ready")
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if running := container.State.Running; running != nil {
			add(running.StartedAt, fmt.Sprintf("started, after %d failures", container.RestartCount))
		}
	}
	return moments
}
