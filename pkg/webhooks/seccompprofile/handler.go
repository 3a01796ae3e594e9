// Package seccompprofile is the webhook that gives Pods the seccomp profile of the container runtime, unless they choose one. It reads
// nothing.
package seccompprofile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// Path is where the webhook is served.
const Path = "/webhooks/seccomp-profile"

// LabelSkip on a Pod, with any value, opts out. The webhook's selectors look at it.
const LabelSkip = "seccompprofile.resources.gardener.cloud/skip"

// NewHandler returns a handler for the creation of Pods.
func NewHandler() admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		setProfile(&pod.Spec)
		return nil
	})
}
