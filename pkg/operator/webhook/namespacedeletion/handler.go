// Package namespacedeletion protects the namespace of a garden from deletion while there is a Garden: it has all data of the
// garden, and its keys.
package namespacedeletion

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/validate-core-v1-namespace"

// New returns the handler. The reader must read from the runtime cluster without a cache.
func New(reader client.Reader) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if request.Operation != admissionv1.Delete || request.SubResource != "" || request.Name != constants.GardenNamespace {
			return nil
		}
		gardens := &v1alpha1.GardenList{}
		if err := reader.List(ctx, gardens, client.Limit(1)); err != nil {
			return fmt.Errorf("list the Gardens that use Namespace %s: %w", request.Name, err)
		}
		if len(gardens.Items) > 0 {
			return admit.Refuse(http.StatusForbidden, "Namespace %s cannot be deleted while Garden %s exists: delete the Garden first",
				request.Name, gardens.Items[0].Name)
		}
		return nil
	})
}
