package tokeninvalidator

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics are the metrics of the controller. The zero value records nothing.
type Metrics struct {
	invalidated, restored *metrics.Counter
	blocked               *metrics.Gauge
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		invalidated: metrics.NewCounter(registry, "static_tokens_invalidated_total",
			"Secrets that the token invalidator labelled, so that the webhook invalidates their tokens."),
		restored: metrics.NewCounter(registry, "static_tokens_restored_total",
			"Secrets from which the token invalidator removed that label, so that their tokens become valid again."),
		blocked: metrics.NewGauge(registry, "static_tokens_blocked",
			"Secrets whose tokens the token invalidator cannot change, by the reason of the Event. reason: TokenInUse, "+
				"SecretHasOtherPurpose, SecretChangeRefused.", "reason").StartAtZero(reasonInUse, reasonOtherPurpose, reasonRefused),
	}
}
