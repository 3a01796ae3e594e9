package measure

import (
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

// Manager is a measured resource-manager.
type Manager struct {
	Profiler

	ControlPlane *controlplane.ControlPlane
	// Name is the prefix of its file names, and Binary the program.
	Name, Binary string
	// Workers and SyncPeriod are concurrentSyncs and syncPeriod of its configuration.
	Workers    int
	SyncPeriod time.Duration
	// Started is the start time of the last process, Ready the time it took to become ready, and Peak the greatest
	// memory of all processes so far, in bytes.
	Started time.Time
	Ready   time.Duration
	Peak    int64

	process *controlplane.Process
	starts  int
}

// Start starts the resource-manager and waits until it is ready.
func (m *Manager) Start(ctx context.Context) error {
	health, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	if m.metrics, err = controlplane.FreePort(); err != nil {
		return err
	}
	m.starts++
	name := fmt.Sprintf("%s-%d", m.Name, m.starts)
	config := filepath.Join(m.ControlPlane.Dir(), name+".yaml")
	err = os.WriteFile(config, fmt.Appendf(nil, managerConfig, filepath.Join(m.ControlPlane.Dir(), "kubeconfig"), health, m.metrics,
		m.Profile != "", m.Workers, m.SyncPeriod), 0o600)
	if err != nil {
		return fmt.Errorf("write the configuration of the resource-manager: %w", err)
	}
	m.Started = time.Now()
	if m.process, err = m.ControlPlane.StartProcess(name, m.Binary, "--config", config); err != nil {
		return err
	}
	if err := AwaitReady(ctx, m.process, fmt.Sprintf("http://127.0.0.1:%d/readyz", health)); err != nil {
		return fmt.Errorf("wait for the resource-manager to become ready: %w", err)
	}
	m.Ready = time.Since(m.Started)
	return nil
}

// AwaitReady waits until a URL of a process responds successfully.
func AwaitReady(ctx context.Context, process *controlplane.Process, url string) error {
	last := errors.New("no response")
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := process.Err(); err != nil {
			return false, err
		}
		last = Fetch(ctx, url, io.Discard)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// Stop stops the resource-manager as a cluster would, if it runs.
func (m *Manager) Stop() error {
	if m.process == nil {
		return nil
	}
	if _, err := m.Memory(); err != nil {
		return err
	}
	defer func() { m.process = nil }()
	return m.process.Stop(stopTimeout)
}

// Err returns an error if the resource-manager has ended.
func (m *Manager) Err() error {
	if m.process == nil {
		return nil
	}
	return m.process.Err()
}

// CPU returns the CPU time that the resource-manager has used, or 0 if it does not run.
func (m *Manager) CPU() (time.Duration, error) {
	if m.process == nil {
		return 0, nil
	}
	return CPUOf(m.process.PID())
}

// Memory returns the memory of the resource-manager. The peak is the maximum over all its processes.
func (m *Manager) Memory() (Memory, error) {
	result, err := MemoryOf(m.process.PID())
	m.Peak = max(m.Peak, result.Peak)
	result.Peak = m.Peak
	return result, err
}

// Heap returns the bytes of Go's heap in use, or 0 if the resource-manager does not report them.
func (m *Manager) Heap(ctx context.Context) (int64, error) {
	var metrics strings.Builder
	if err := Fetch(ctx, m.metricsURL("/metrics"), &metrics); err != nil {
		return 0, err
	}
	return ParseMetric(metrics.String(), "go_memstats_heap_inuse_bytes")
}

// ParseMetric returns the value of a metric without labels, or 0 if it is missing.
func ParseMetric(metrics, name string) (int64, error) {
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

// Fetch copies the response of a URL.
func Fetch(ctx context.Context, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(to, response.Body)
	return err
}

// SumMetric returns the sum of a counter over all of its labels.
func SumMetric(metrics, name string) (int64, error) {
	var sum int64
	for line := range strings.Lines(metrics) {
		text, found := strings.CutPrefix(line, name+"{")
		_, text, closed := strings.Cut(text, "} ")
		if !found || !closed {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return 0, fmt.Errorf("read the metric %s: %w", name, err)
		}
		sum += int64(value)
	}
	return sum, nil
}
