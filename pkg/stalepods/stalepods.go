// Package stalepods decides which Pods of a cluster to delete because they ended and their controllers have replaced
// them. Kubernetes itself keeps up to 12,500 ended Pods. The rules are those of Gardener.
package stalepods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// terminatingFor is how long a Pod may take to terminate before it is deleted without a grace period.
const terminatingFor = 5 * time.Minute

// staleReasons are parts of the reasons of ended Pods that their controllers have replaced.
var staleReasons = []string{"Evicted", "NodeAffinity", "NodeLost", "Preempting"}

// Reduce keeps the fields of a Pod that the decision reads. It is a transform for caches.
func Reduce(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	reduced := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Reason: pod.Status.Reason},
	}
	for _, owner := range pod.OwnerReferences {
		reduced.OwnerReferences = append(reduced.OwnerReferences, metav1.OwnerReference{Kind: owner.Kind, Name: owner.Name, UID: owner.UID})
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget {
			reduced.Status.Conditions = append(reduced.Status.Conditions,
				corev1.PodCondition{Type: condition.Type, Status: condition.Status})
		}
	}
	return reduced, nil
}

// MayBeStale reports whether [Judge] must check a Pod. It is a filter for watches.
func MayBeStale(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || stale(pod) }

// stale reports whether a Pod has ended and is no longer needed.
func stale(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case slices.ContainsFunc(staleReasons, func(reason string) bool { return strings.Contains(pod.Status.Reason, reason) }),
		strings.HasPrefix(pod.Status.Reason, "OutOf"):
		return true
	case slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue
	}):
		return true
	}
	return ended && slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "ReplicaSet" })
}

// Verdict is the decision about a Pod.
type Verdict struct {
	// Remove deletes the Pod. Force deletes it without a grace period.
	Remove, Force bool
	// Again is when to check it again; zero for never.
	Again time.Time
}

// Judge decides what to do with a Pod. It is a pure function. It does nothing for a Pod that was already deleted
// without a grace period: a finalizer keeps it, and another deletion would not change that.
func Judge(pod *corev1.Pod, now time.Time) Verdict {
	if pod.DeletionTimestamp == nil {
		return Verdict{Remove: stale(pod)}
	}
	until := pod.DeletionTimestamp.Add(terminatingFor)
	switch grace := pod.DeletionGracePeriodSeconds; {
	case grace != nil && *grace == 0:
		return Verdict{}
	case now.Before(until):
		return Verdict{Again: until}
	}
	return Verdict{Remove: true, Force: true}
}

// Delete deletes a Pod if the verdict requires it. It is not an error if the Pod no longer exists.
func Delete(ctx context.Context, writer client.Writer, pod *corev1.Pod, judged Verdict) error {
	if !judged.Remove {
		return nil
	}
	options := []client.DeleteOption{client.Preconditions{UID: &pod.UID}}
	if judged.Force {
		options = append(options, client.GracePeriodSeconds(0))
	}
	log.FromContext(ctx).Info("Deleting a stale Pod", "pod", client.ObjectKeyFromObject(pod).String(),
		"reason", pod.Status.Reason, "phase", pod.Status.Phase, "terminating", judged.Force)
	err := writer.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, options...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the stale Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
