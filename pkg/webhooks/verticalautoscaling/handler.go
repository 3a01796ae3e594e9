// Package verticalautoscaling implements the webhook that makes VerticalPodAutoscalers resize Pods in place instead of
// evicting them. It reads no objects.
package verticalautoscaling

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/vpa-in-place-updates"

const (
	// LabelSkip on a VerticalPodAutoscaler, with any value, opts out. The selectors of the webhook match it.
	LabelSkip = "vpa-in-place-updates.resources.gardener.cloud/skip"
	// LabelMutated with the value "true" marks each VerticalPodAutoscaler whose mode the webhook has set.
	LabelMutated = "vpa-in-place-updates.resources.gardener.cloud/mutated"
)

// NewHandler returns a handler for the creation and update of VerticalPodAutoscalers.
func NewHandler() admission.Handler {
	newAutoscaler := func() *unstructured.Unstructured { return &unstructured.Unstructured{} }
	return admit.Mutating(newAutoscaler, func(_ context.Context, _ *admission.Request, autoscaler *unstructured.Unstructured) error {
		updateInPlace(autoscaler.Object)
		return nil
	})
}
