package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/etcd/backup"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
)

// drainTimeout limits how long the end of the member is delayed to store the last changes. The grace period of Pods is 30 s.
const drainTimeout = 15 * time.Second

// newTaker returns what takes the backups of the member; nil if it has none.
func (m *Member) newTaker(client *clientv3.Client) (*backup.Taker, error) {
	of := m.config.Backup
	if of == nil {
		return nil, nil
	}
	schedule, err := cron.ParseStandard(of.FullSchedule)
	if err != nil {
		return nil, fmt.Errorf("the schedule of full snapshots: %w", err)
	}
	taker := &backup.Taker{
		Settings: backup.Settings{
			Full: schedule, Period: of.DeltaPeriod.Duration, Limit: of.DeltaLimit, Compression: of.Compression,
			Collection: of.CollectionPeriod.Duration, Policy: snapshot.Policy{Limit: of.MaxFull, DeltaRetention: of.DeltaRetention.Duration},
			Timeout: of.Timeout.Duration, Directory: filepath.Join(m.config.Directory, "backup"),
		},
		Open: m.openStore, Etcd: client, Endpoint: m.localURL(), Follows: m.follows,
		Cluster: func() string {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.cluster
		},
		Report: m.reportBackups, Metrics: backup.NewMetrics(m.registry), Clock: clock.RealClock{}, Log: m.log,
	}
	taker.Prepare()
	return taker, nil
}

// reportBackups writes the Leases of the snapshots.
func (m *Member) reportBackups(ctx context.Context, report backup.Report) error {
	m.mu.Lock()
	cluster := m.cluster
	m.mu.Unlock()
	return errors.Join(
		m.leases.writeSnapshot(ctx, lease.FullName(m.config.Etcd), cluster, report.Full, report.Error),
		m.leases.writeSnapshot(ctx, lease.DeltaName(m.config.Etcd), cluster, report.Delta, report.Error))
}

// ServeBackups serves snapshots on demand and metrics until the context ends. It returns immediately without backups.
func (m *Member) ServeBackups(ctx context.Context) error {
	if m.config.Backup == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /snapshot/full", m.snapshotNow)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: requestTimeout,
		ErrorLog: log.New(os.Stderr, "", 0),
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(m.config.ListenAddress, strconv.Itoa(m.config.Backup.Port)))
	if err != nil {
		return fmt.Errorf("serve backups: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if files := m.config.ClientTLS; files != nil {
		authority, readErr := os.ReadFile(files.CAFile)
		if readErr != nil {
			return errors.Join(fmt.Errorf("serve backups: %w", readErr), listener.Close())
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		server.TLSConfig = &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
		err = server.ServeTLS(listener, files.ServerCertFile, files.ServerKeyFile)
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve backups: %w", err)
}

// snapshotNow takes a full snapshot, and answers with its description in JSON.
func (m *Member) snapshotNow(w http.ResponseWriter, r *http.Request) {
	final := false
	if text := r.URL.Query().Get("final"); text != "" {
		var err error
		if final, err = strconv.ParseBool(text); err != nil {
			http.Error(w, "final must be true or false", http.StatusBadRequest)
			return
		}
	}
	m.mu.Lock()
	taker := m.taker
	m.mu.Unlock()
	if taker == nil {
		http.Error(w, "etcd has not been started yet", http.StatusServiceUnavailable)
		return
	}
	object, err := taker.Full(r.Context(), final)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}
