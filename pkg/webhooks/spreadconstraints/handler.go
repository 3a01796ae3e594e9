// Package spreadconstraints is the webhook that lets topology spread constraints count only Pods of the same template, so that Pods
// are spread evenly after a rolling update, too. It reads nothing.
package spreadconstraints

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// Path is where the webhook is served.
const Path = "/webhooks/pod-topology-spread-constraints"

// LabelSkip on a Pod, with any value, opts out. The webhook's selectors look at it.
const LabelSkip = "topology-spread-constraints.resources.gardener.cloud/skip"

// NewHandler returns a handler for the creation of Pods.
func NewHandler() admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		countSameTemplate(pod)
		return nil
	})
}
