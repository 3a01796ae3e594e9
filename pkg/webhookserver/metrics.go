package webhookserver

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// The decisions of admission webhooks, as label values.
const (
	decisionAllowed     = "allowed"
	decisionPatched     = "patched"
	decisionDenied      = "denied"
	decisionUnavailable = "unavailable"
	decisionError       = "error"
)

// Metrics count the decisions of admission webhooks. The server of controller-runtime reports their durations and panics.
type Metrics struct {
	decisions *metrics.Counter
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{decisions: metrics.NewCounter(registry, "webhook_decisions_total",
		"Requests of admission webhooks: allowed unchanged or with a patch, denied, temporarily unavailable because facts were missing, or "+
			"failed. decision: allowed, patched, denied, unavailable, error.", "webhook", "decision")}
}

// observe returns a handler that counts the decisions of an admission webhook, and logs requests without a decision.
func (m Metrics) observe(row Webhook, handler http.Handler) http.Handler {
	served, is := handler.(*admission.Webhook)
	if !is {
		return handler
	}
	for _, decision := range []string{decisionAllowed, decisionPatched, decisionDenied, decisionUnavailable, decisionError} {
		m.decisions.Add(0, row.Name, decision)
	}
	decide := served.Handler
	served.Handler = admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := decide.Handle(ctx, request)
		decision := decisionOf(response)
		m.decisions.Inc(row.Name, decision)
		if decision == decisionError || decision == decisionUnavailable {
			logUndecided(ctx, row.Name, decision, response)
		}
		return response
	})
	return served
}

func decisionOf(response admission.Response) string {
	switch {
	case response.Allowed && len(response.Patches) > 0:
		return decisionPatched
	case response.Allowed:
		return decisionAllowed
	case response.Result != nil && response.Result.Code == http.StatusServiceUnavailable:
		return decisionUnavailable
	case response.Result != nil && response.Result.Code == http.StatusInternalServerError:
		return decisionError
	default:
		return decisionDenied
	}
}
