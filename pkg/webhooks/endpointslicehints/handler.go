// Package endpointslicehints is the webhook that has each endpoint of a Service used in its own zone alone, as far as kube-proxy follows
// the hints of EndpointSlices. It reads nothing.
package endpointslicehints

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// Path is where the webhook is served.
const Path = "/webhooks/endpoint-slice-hints"

const (
	// LabelConsider on an EndpointSlice with the value "true" opts in. Kubernetes copies it from the Service. The webhook's
	// selectors look at it.
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
