package backup

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of the backups. Their names are those of etcd-backup-restore. A nil pointer records nothing.
type Metrics struct {
	duration                      *prometheus.HistogramVec
	latestRevision, latestInstant *prometheus.GaugeVec
	garbage                       *prometheus.CounterVec
	failures                      prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "etcdbr_snapshot_duration_seconds", Help: "Duration of storing a snapshot, by kind.", Buckets: prometheus.ExponentialBuckets(0.1, 4, 8),
		}, []string{"kind", "succeeded"}),
		latestRevision: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "etcdbr_snapshot_latest_revision", Help: "Revision up to which the store has all changes, by kind of the last snapshot.",
		}, []string{"kind"}),
		latestInstant: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "etcdbr_snapshot_latest_timestamp", Help: "Time of that revision, in seconds since 1970, by kind.",
		}, []string{"kind"}),
		garbage: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcdbr_snapshot_gc_total", Help: "Deletions of old snapshots, by kind.",
		}, []string{"kind", "succeeded"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "etcdbr_snapshotter_failure_total", Help: "Failed attempts to take, store or delete snapshots.",
		}),
	}
	registry.MustRegister(m.duration, m.latestRevision, m.latestInstant, m.garbage, m.failures)
	return m
}

// measure records the duration and the result of an operation.
func (m *Metrics) measure(kind string, do func() error) error {
	begin := time.Now()
	err := do()
	if m != nil {
		m.duration.WithLabelValues(kind, strconv.FormatBool(err == nil)).Observe(time.Since(begin).Seconds())
	}
	return err
}

func (m *Metrics) observe(report Report) {
	if m == nil {
		return
	}
	for kind, point := range map[string]Point{"full": report.Full, "delta": report.Delta} {
		if !point.Time.IsZero() {
			m.latestRevision.WithLabelValues(kind).Set(float64(point.Revision))
			m.latestInstant.WithLabelValues(kind).Set(float64(point.Time.Unix()))
		}
	}
}

func (m *Metrics) collected(kind string, err error) {
	if m != nil {
		m.garbage.WithLabelValues(kind, strconv.FormatBool(err == nil)).Inc()
	}
}

func (m *Metrics) failed() {
	if m != nil {
		m.failures.Inc()
	}
}
