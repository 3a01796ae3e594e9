// Package seccompprofile implements the webhook that sets the seccomp profile of the container runtime in Pods that do
// not choose one. It reads no objects.
package seccompprofile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/seccomp-profile"

// LabelSkip on a Pod, with any value, opts out. The selectors of the webhook match it.
const LabelSkip = "seccompprofile.resources.gardener.cloud/skip"

// NewHandler returns a handler for the creation of Pods.
func NewHandler() admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		setProfile(&pod.Spec)
		return nil
	})
}
