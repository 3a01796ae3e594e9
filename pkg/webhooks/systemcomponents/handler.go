// Package systemcomponents implements the webhook that schedules system components on the nodes for system components. It
// sets their node selector and adds tolerations for the taints of these nodes.
//
// It reads the labels and spec.taints of Nodes.
package systemcomponents

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/system-components-config"

const (
	// LabelSkip on a Pod, with any value, opts out. The selectors of the webhook match it.
	LabelSkip = "system-components-config.resources.gardener.cloud/skip"
	// LabelConsider on a Namespace with the value "true" opts in, if the selectors of the webhook require it.
	LabelConsider = "system-components-config.resources.gardener.cloud/consider"
)

// Options are the settings of the webhook.
type Options struct {
	// PodNodeSelector is merged into the node selector of Pods, and takes precedence.
	PodNodeSelector map[string]string
	// PodTolerations are added to the tolerations of Pods.
	PodTolerations []corev1.Toleration
}

// NodeTolerations returns the tolerations that Pods need to run on any node for system components. See Watch.
type NodeTolerations interface {
	// Tolerations returns the tolerations without duplicates, always in the same order. The caller must not modify them.
	Tolerations(ctx context.Context) ([]corev1.Toleration, error)
}

// NewHandler returns a handler for the creation of Pods.
func NewHandler(nodes NodeTolerations, options Options) admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(ctx context.Context, _ *admission.Request, pod *corev1.Pod) error {
		if ofDaemonSet(pod) {
			return nil
		}
		ofNodes, err := nodes.Tolerations(ctx)
		if err != nil {
			return admit.Unavailable("cannot determine the tolerations of the Pod: the nodes cannot be read: %w", err)
		}
		place(&pod.Spec, options.PodNodeSelector, options.PodTolerations, ofNodes)
		return nil
	})
}
