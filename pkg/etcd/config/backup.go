package config

import (
	"cmp"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/objectstore"
)

// Backup defines the backups of an etcd cluster.
type Backup struct {
	// Store is where backups are stored. Required.
	Store objectstore.Location `json:"store"`
	// FullSchedule is when full snapshots are taken, in UTC, as a cron expression with five fields. Default: daily at midnight.
	FullSchedule string `json:"fullSchedule,omitempty"`
	// DeltaPeriod is the time between two delta snapshots, and DeltaLimit the size in bytes of the changes at which one is taken
	// earlier. Defaults: 5m, 100 MiB.
	DeltaPeriod metav1.Duration `json:"deltaPeriod,omitempty"`
	DeltaLimit  int64           `json:"deltaLimit,omitempty"`
	// Compression: gzip, zlib, lzw, or none. Default: gzip.
	Compression string `json:"compression,omitempty"`
	// CollectionPeriod is the time between two garbage collections. Default: 12h.
	CollectionPeriod metav1.Duration `json:"collectionPeriod,omitempty"`
	// MaxFull is the number of full snapshots to keep. Default: 0, for fewer the older they are.
	MaxFull int `json:"maxFull,omitempty"`
	// DeltaRetention is how long delta snapshots are kept that the last full snapshot replaces. Default: 1h.
	DeltaRetention metav1.Duration `json:"deltaRetention,omitempty"`
	// Timeout limits the time for a snapshot. Default: 15m.
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// Port serves /snapshot/full and /metrics, with the certificates of clientTLS if that is set. Default: 8080.
	Port int `json:"port,omitempty"`
}

func (b *Backup) setDefaults() {
	b.FullSchedule = cmp.Or(b.FullSchedule, "0 0 * * *")
	b.DeltaPeriod = cmp.Or(b.DeltaPeriod, metav1.Duration{Duration: 5 * time.Minute})
	b.DeltaLimit = cmp.Or(b.DeltaLimit, 100<<20)
	b.Compression = cmp.Or(b.Compression, "gzip")
	b.CollectionPeriod = cmp.Or(b.CollectionPeriod, metav1.Duration{Duration: 12 * time.Hour})
	b.DeltaRetention = cmp.Or(b.DeltaRetention, metav1.Duration{Duration: time.Hour})
	b.Timeout = cmp.Or(b.Timeout, metav1.Duration{Duration: 15 * time.Minute})
	b.Port = cmp.Or(b.Port, 8080)
}

func (b *Backup) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if err := objectstore.Supported(b.Store.Provider); err != nil {
		errs = append(errs, field.Invalid(path.Child("store", "provider"), b.Store.Provider, err.Error()))
	}
	for name, value := range map[string]string{"container": b.Store.Container, "prefix": b.Store.Prefix} {
		if value == "" {
			errs = append(errs, field.Required(path.Child("store", name), "must be set"))
		}
	}
	if _, err := cron.ParseStandard(b.FullSchedule); err != nil {
		errs = append(errs, field.Invalid(path.Child("fullSchedule"), b.FullSchedule, "must be a cron expression with five fields"))
	}
	for name, value := range map[string]time.Duration{
		"deltaPeriod": b.DeltaPeriod.Duration, "collectionPeriod": b.CollectionPeriod.Duration, "timeout": b.Timeout.Duration,
	} {
		if value <= 0 {
			errs = append(errs, field.Invalid(path.Child(name), value.String(), "must be above 0"))
		}
	}
	if b.DeltaLimit < 0 || b.MaxFull < 0 || b.DeltaRetention.Duration < 0 {
		errs = append(errs, field.Invalid(path, "", "deltaLimit, maxFull and deltaRetention must not be negative"))
	}
	errs = append(errs, oneOf(path.Child("compression"), b.Compression, "none", "gzip", "zlib", "lzw")...)
	return append(errs, validatePort(path.Child("port"), b.Port)...)
}
