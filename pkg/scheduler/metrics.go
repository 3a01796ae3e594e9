package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// register adds the metric with the number of Shoots that wait for a Seed.
func register(waiting *waiting) {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "scheduler_pending_shoots", Help: "Number of Shoots for which no Seed is eligible.",
	}, func() float64 { return float64(waiting.len()) })
	metrics.Registry.Unregister(gauge)
	metrics.Registry.MustRegister(gauge)
}
