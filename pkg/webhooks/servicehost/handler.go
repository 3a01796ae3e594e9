// Package servicehost implements the webhook that sets the variable KUBERNETES_SERVICE_HOST in the containers of Pods.
// They then connect to the API server by its own name instead of through the Service kubernetes and the proxy behind it.
// The webhook reads no objects.
package servicehost

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/kubernetes-service-host"

const (
	// LabelInject on a Pod or a Namespace with the value InjectDisable opts out. The selectors of the webhook match it.
	LabelInject = "apiserver-proxy.networking.gardener.cloud/inject"
	// InjectDisable is the value of LabelInject that opts out.
	InjectDisable = "disable"
)

// NewHandler returns a handler for the creation of Pods. The host is the fully qualified name of the API server. If it is
// empty, the handler does not change Pods.
func NewHandler(host string) admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		setHost(&pod.Spec, host)
		return nil
	})
}
