// Package endpointslicehints implements the webhook that restricts each endpoint of a Service to clients in its own zone,
// as far as kube-proxy follows the hints of EndpointSlices. It reads no objects.
package endpointslicehints

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/endpoint-slice-hints"

const (
	// LabelConsider with the value "true" on an EndpointSlice opts in. Kubernetes copies the label from the Service. The
	// selectors of the webhook match it.
	LabelConsider = "endpoint-slice-hints.resources.gardener.cloud/consider"
)

// NewHandler returns a handler for the creation and update of EndpointSlices.
func NewHandler() admission.Handler {
	newSlice := func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} }
	return admit.Mutating(newSlice, func(_ context.Context, _ *admission.Request, slice *discoveryv1.EndpointSlice) error {
		setHints(slice.Endpoints)
		return nil
	})
}
