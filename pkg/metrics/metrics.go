// Package metrics registers counters, gauges and histograms of the resource-manager. Nil metrics record nothing, so
// that controllers in tests do not need any.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Namespace is the first part of the names of all metrics.
const Namespace = "resource_manager"

// Counter counts events by the values of its labels.
type Counter struct{ series *prometheus.CounterVec }

// NewCounter returns a registered counter. The name does not contain the namespace.
func NewCounter(registry prometheus.Registerer, name, help string, labels ...string) *Counter {
	series := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: Namespace, Name: name, Help: help}, labels)
	registry.MustRegister(series)
	return &Counter{series: series}
}

// StartAtZero exposes a series for each value of the only label before its first event, so that queries see the
// increase from 0 to 1.
func (c *Counter) StartAtZero(values ...string) *Counter {
	for _, value := range values {
		c.Add(0, value)
	}
	return c
}

// Add adds a number of events.
func (c *Counter) Add(events int, values ...string) {
	if c != nil {
		c.series.WithLabelValues(values...).Add(float64(events))
	}
}

// Inc adds one event.
func (c *Counter) Inc(values ...string) { c.Add(1, values...) }

// Gauge is a number by the values of its labels.
type Gauge struct{ series *prometheus.GaugeVec }

// NewGauge returns a registered gauge. The name does not contain the namespace. Without labels it starts at 0.
func NewGauge(registry prometheus.Registerer, name, help string, labels ...string) *Gauge {
	series := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: Namespace, Name: name, Help: help}, labels)
	registry.MustRegister(series)
	if len(labels) == 0 {
		series.WithLabelValues()
	}
	return &Gauge{series: series}
}

// StartAtZero exposes a series for each value of the only label.
func (g *Gauge) StartAtZero(values ...string) *Gauge {
	for _, value := range values {
		g.Add(0, value)
	}
	return g
}

// Set sets the number.
func (g *Gauge) Set(number float64, values ...string) {
	if g != nil {
		g.series.WithLabelValues(values...).Set(number)
	}
}

// Add adds to the number.
func (g *Gauge) Add(more float64, values ...string) {
	if g != nil {
		g.series.WithLabelValues(values...).Add(more)
	}
}

// Histogram measures durations by the values of its labels.
type Histogram struct{ series *prometheus.HistogramVec }

// NewHistogram returns a registered histogram of durations in seconds. The name does not contain the namespace. Without
// labels it starts at 0.
func NewHistogram(registry prometheus.Registerer, name, help string, buckets []float64, labels ...string) *Histogram {
	series := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: Namespace, Name: name, Help: help, Buckets: buckets}, labels)
	registry.MustRegister(series)
	if len(labels) == 0 {
		series.WithLabelValues()
	}
	return &Histogram{series: series}
}

// StartAtZero exposes a series for each value of the only label.
func (h *Histogram) StartAtZero(values ...string) *Histogram {
	for _, value := range values {
		h.series.WithLabelValues(value)
	}
	return h
}

// Observe adds a duration.
func (h *Histogram) Observe(took time.Duration, values ...string) {
	if h != nil {
		h.series.WithLabelValues(values...).Observe(took.Seconds())
	}
}
