// Package backup takes the snapshots of an etcd cluster: full ones on a schedule, and delta snapshots of the changes in
// between. Only the leader takes them. See docs/backup.md.
package backup

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
)

// Settings define when snapshots are taken and how long they are kept.
type Settings struct {
	// Full is the schedule of full snapshots.
	Full cron.Schedule
	// Period is the time between two delta snapshots, and Limit the size in bytes of the changes at which one is taken
	// earlier. Changes that cannot be stored take at most five times the limit of the disk.
	Period time.Duration
	Limit  int64
	// Compression is one of the names in package snapshot.
	Compression string
	// Collection is the time between two garbage collections with Policy.
	Collection time.Duration
	Policy     snapshot.Policy
	// Timeout limits a full snapshot.
	Timeout time.Duration
	// Directory is for the changes that are not stored yet. It is emptied at start.
	Directory string
}

// Point is a revision up to which the store has all changes, and when this was the case.
type Point struct {
	Revision int64
	Time     time.Time
}

// Report is the state of the backups.
type Report struct {
	// Full is the last full snapshot, and Delta the end of the chain of snapshots. They are zero while they are not known.
	Full, Delta Point
	// Error is why snapshots cannot be taken, empty if they can.
	Error string
}

// Taker takes the snapshots of one member while it leads.
type Taker struct {
	Settings Settings
	// Open opens the store. It is called for each operation, so that new credentials are used.
	Open func(context.Context) (snapshot.Store, error)
	// Etcd is the etcd of the member, and Endpoint its URL.
	Etcd     *clientv3.Client
	Endpoint string
	// Cluster is the identifier of the cluster. Follows returns the epoch of the store that the cluster continues or replaces.
	Cluster func() string
	Follows func(context.Context) (int, error)
	// Report stores the state of the backups. It is not called concurrently.
	Report  func(context.Context, Report) error
	Metrics *Metrics
	Clock   clock.WithTicker
	Log     *slog.Logger

	leads chan bool

	mu     sync.Mutex
	latest Report
}

const (
	// requestTimeout limits a request to etcd or to the store that is not a snapshot.
	requestTimeout = 30 * time.Second
	// minRetry and maxRetry limit the time between two attempts.
	minRetry = 2 * time.Second
	maxRetry = time.Minute
)

// backoff returns the time after a number of failed attempts.
func backoff(failed int) time.Duration {
	wait := minRetry
	for range min(failed, 10) - 1 {
		wait *= 2
	}
	return min(wait, maxRetry)
}
