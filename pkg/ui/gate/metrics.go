package gate

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Results of logins, as values of a label.
const (
	resultAccepted = "accepted"
	resultRefused  = "refused"
	resultLimited  = "limited"
)

// Metrics measure the use of the page. The zero value counts nothing.
type Metrics struct {
	viewers *metrics.Gauge
	logins  *metrics.Counter
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		viewers: metrics.NewGauge(registry, "ui_viewers", "Users who viewed the page in the last minutes, in this process."),
		logins: metrics.NewCounter(registry, "ui_logins_total",
			"Logins to the page with a token that is new, or was not used for a while: accepted by the cluster, refused by it, or "+
				"rejected because there were too many at once. result: accepted, refused, limited.", "result").
			StartAtZero(resultAccepted, resultRefused, resultLimited),
	}
}
