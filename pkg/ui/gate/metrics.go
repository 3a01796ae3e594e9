package gate

import "github.com/prometheus/client_golang/prometheus"

// What becomes of log-ins, as values of a label.
const (
	resultAccepted = "accepted"
	resultRefused  = "refused"
	resultLimited  = "limited"
)

// Metrics measure the use of the page.
type Metrics struct {
	viewers prometheus.Gauge
	logins  *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		viewers: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "resource_manager", Name: "ui_viewers", Help: "Users who viewed the page in the last minutes, in this process.",
		}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "resource_manager", Name: "ui_logins_total",
			Help: "Log-ins to the page with a token that is new, or was not used for a while: accepted by the cluster, refused by it, or " +
				"rejected because there were too many at once. result: accepted, refused, limited.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultAccepted, resultRefused, resultLimited} {
		metrics.logins.WithLabelValues(result)
	}
	registry.MustRegister(metrics.viewers, metrics.logins)
	return metrics
}
