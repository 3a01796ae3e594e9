package webhookserver

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// logUndecided logs why a webhook could not decide about a request. Otherwise only the client would know. The logger of
// controller-runtime adds the object and the user of the request.
func logUndecided(ctx context.Context, webhook, decision string, response admission.Response) {
	log.FromContext(ctx).Info("Could not decide about a request", "webhook", webhook, "decision", decision, "reason", response.Result.Message)
}
