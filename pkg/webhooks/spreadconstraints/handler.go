// Package spreadconstraints implements the webhook that makes topology spread constraints count only Pods of the same
// template, so that Pods are also spread evenly after a rolling update. It reads no objects.
package spreadconstraints

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/pod-topology-spread-constraints"

// LabelSkip on a Pod, with any value, opts out. The selectors of the webhook match it.
const LabelSkip = "topology-spread-constraints.resources.gardener.cloud/skip"

// NewHandler returns a handler for the creation of Pods.
func NewHandler() admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		countSameTemplate(pod)
		return nil
	})
}
