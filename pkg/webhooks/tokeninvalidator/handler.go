package tokeninvalidator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is where gardener-resource-manager serves the webhook.
const Path = "/webhooks/invalidate-service-account-token-secret"

// NewHandler returns a handler for Secrets that are created or updated. Its patches change only the token. It has no side
// effects, so it also handles dry runs. It rejects Secrets that it cannot decode without quoting their data.
func NewHandler() admission.Handler {
	return admit.ByKind(map[schema.GroupKind]admission.Handler{
		{Kind: "Secret"}: admit.Mutating(func() *corev1.Secret { return &corev1.Secret{} },
			func(_ context.Context, _ *admission.Request, secret *corev1.Secret) error {
				if changed := Invalidate(secret); changed != nil {
					secret.Data = changed.Data
				}
				return nil
			}),
	})
}
