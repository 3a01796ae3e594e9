// Package schedulername implements the webhook that assigns Pods to a scheduler other than the default one. It reads no
// objects.
package schedulername

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/default-pod-scheduler-name"

// NewHandler returns a handler for the creation of Pods.
func NewHandler(schedulerName string) admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		setScheduler(&pod.Spec, schedulerName)
		return nil
	})
}
