package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

const managerConfig = `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection:
  kubeconfig: %q
  qps: -1
leaderElection:
  leaderElect: false
server:
  healthProbes:
    bindAddress: 127.0.0.1
    port: %d
  metrics:
    bindAddress: 127.0.0.1
    port: %d
debugging:
  enableProfiling: %t
controllers:
  managedResource:
    concurrentSyncs: %d
    syncPeriod: %s
`

// manager is the resource-manager that is measured.
type manager struct {
	cp      *controlplane.ControlPlane
	options options
	// name begins the names of its files.
	name    string
	process *controlplane.Process
	metrics int
	starts  int
	started time.Time
	ready   time.Duration
	// peak is the greatest memory of all processes so far.
	peak int64
}

// start starts the resource-manager and waits until it is ready.
func (m *manager) start(ctx context.Context) error {
	health, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	if m.metrics, err = controlplane.FreePort(); err != nil {
		return err
	}
	m.starts++
	name := fmt.Sprintf("%s-%d", m.name, m.starts)
	config := filepath.Join(m.cp.Dir(), name+".yaml")
	err = os.WriteFile(config, fmt.Appendf(nil, managerConfig, filepath.Join(m.cp.Dir(), "kubeconfig"), health, m.metrics,
		m.options.Profile != "", m.options.Workers, m.options.SyncPeriod), 0o600)
	if err != nil {
		return fmt.Errorf("write the configuration of the resource-manager: %w", err)
	}
	m.started = time.Now()
	if m.process, err = m.cp.StartProcess(name, m.options.Binary, "--config", config); err != nil {
		return err
	}
	last := errors.New("no answer")
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := m.process.Err(); err != nil {
			return false, err
		}
		last = fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", health), io.Discard)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the resource-manager to become ready: %w", errors.Join(err, last))
	}
	m.ready = time.Since(m.started)
	return nil
}

// stop stops the resource-manager, if it runs, as a cluster would.
func (m *manager) stop() error {
	if m.process == nil {
		return nil
	}
	if _, err := m.memory(); err != nil {
		return err
	}
	defer func() { m.process = nil }()
	return m.process.Stop(stopTimeout)
}

// err says whether the resource-manager has ended.
func (m *manager) err() error {
	if m.process == nil {
		return nil
	}
	return m.process.Err()
}

// cpu returns the CPU time that the resource-manager has used; none if it does not run.
func (m *manager) cpu() (time.Duration, error) {
	if m.process == nil {
		return 0, nil
	}
	return cpuOf(m.process.PID())
}

// memory returns what the resource-manager holds, and the most that any process of it has held.
func (m *manager) memory() (memory, error) {
	result, err := memoryOf(m.process.PID())
	m.peak = max(m.peak, result.Peak)
	result.Peak = m.peak
	return result, err
}

// heap returns the bytes of Go's heap that are in use; 0 if the resource-manager does not tell.
func (m *manager) heap(ctx context.Context) (int64, error) {
	var metrics strings.Builder
	if err := fetch(ctx, m.metricsURL("/metrics"), &metrics); err != nil {
		return 0, err
	}
	return parseMetric(metrics.String(), "go_memstats_heap_inuse_bytes")
}

// parseMetric returns the value of a metric without labels, 0 if it is not there.
func parseMetric(metrics, name string) (int64, error) {
	for line := range strings.Lines(metrics) {
		if text, found := strings.CutPrefix(line, name+" "); found {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				return 0, fmt.Errorf("read the metric %s: %w", name, err)
			}
			return int64(value), nil
		}
	}
	return 0, nil
}

func (m *manager) metricsURL(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", m.metrics, path)
}

// profileCPU records a CPU profile in the background if profiles are wanted. The function that it returns waits for it.
func (m *manager) profileCPU(ctx context.Context, name string, duration time.Duration) func() error {
	if m.options.Profile == "" {
		return func() error { return nil }
	}
	seconds := max(1, int(duration.Seconds()))
	result := make(chan error, 1)
	go func() {
		result <- m.saveProfile(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), name+"-cpu")
	}()
	return func() error { return <-result }
}

// profileMemory records what is held, and what was allocated since the start, if profiles are wanted.
func (m *manager) profileMemory(ctx context.Context, name string) error {
	if m.options.Profile == "" {
		return nil
	}
	return errors.Join(
		m.saveProfile(ctx, "/debug/pprof/allocs", name+"-allocs"),
		m.saveProfile(ctx, "/debug/pprof/heap?gc=1", name+"-heap"),
	)
}

func (m *manager) saveProfile(ctx context.Context, path, name string) (err error) {
	if err := os.MkdirAll(m.options.Profile, 0o750); err != nil {
		return fmt.Errorf("make the directory of profiles: %w", err)
	}
	file, err := os.Create(filepath.Join(m.options.Profile, name+".pprof"))
	if err != nil {
		return fmt.Errorf("save a profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if err := fetch(ctx, m.metricsURL(path), buffered); err != nil {
		return fmt.Errorf("take a profile: %w", err)
	}
	return buffered.Flush()
}

// fetch copies what a URL answers.
func fetch(ctx context.Context, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(to, response.Body)
	return err
}
