package csrapprover

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

// Metrics count decisions. The zero value records nothing.
type Metrics struct {
	decisions *metrics.Counter
	age       *metrics.Histogram
}

// Values of the label of decisions.
const (
	valueApproved = "approved"
	valueDenied   = "denied"
)

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	m := Metrics{
		decisions: metrics.NewCounter(registry, "certificate_requests_decided_total",
			"CertificateSigningRequests that the approver approved or denied. request: kubelet-serving, node-agent, gardenadm, "+
				"unknown. decision: approved, denied. reason: passed, or of a denial form, user, common-name, subject, "+
				"alternative-names, usages, node, machine, node-addresses.", "request", "decision", "reason"),
		age: metrics.NewHistogram(registry, "certificate_request_decision_age_seconds",
			"Age of CertificateSigningRequests in seconds when they were approved or denied.",
			// From one second to one hour, after which Kubernetes deletes decided requests.
			[]float64{1, 2, 5, 10, 30, 60, 300, 900, 3600}, "request").StartAtZero(ofKubelet, ofNodeAgent, ofGardenadm),
	}
	for _, request := range []string{ofKubelet, ofNodeAgent, ofGardenadm} {
		m.decisions.Add(0, request, valueApproved, classPassed)
	}
	return m
}

// decided records a written decision.
func (m Metrics) decided(decision decision, age time.Duration) {
	value := valueDenied
	if decision.verdict == approve {
		value = valueApproved
	}
	m.decisions.Inc(decision.of, value, decision.class)
	m.age.Observe(age, decision.of)
}
