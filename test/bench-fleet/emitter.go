package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

// stopTimeout is how long the flow may take to stop.
const stopTimeout = 20 * time.Second

// emitter is the example flow as a process.
type emitter struct {
	cp      *controlplane.ControlPlane
	options options
	process *controlplane.Process
	// metrics and profiles are ports.
	metrics, profiles int
	starts            int
}

// start starts the flow with a version of its program.
func (e *emitter) start(ctx context.Context, version string) error {
	health, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	if e.metrics, err = controlplane.FreePort(); err != nil {
		return err
	}
	if e.profiles, err = controlplane.FreePort(); err != nil {
		return err
	}
	e.starts++
	e.process, err = e.cp.StartProcess(fmt.Sprintf("sites-%d", e.starts), e.options.Sites,
		"--kubeconfig", e.cp.Dir()+"/kubeconfig", "--version", version, "--qps", "-1",
		"--workers", fmt.Sprint(e.options.Workers), "--budget", fmt.Sprint(e.options.Budget), "--retry", e.options.Retry.String(),
		"--health-address", fmt.Sprintf("127.0.0.1:%d", health), "--metrics-address", fmt.Sprintf("127.0.0.1:%d", e.metrics),
		"--profile-address", fmt.Sprintf("127.0.0.1:%d", e.profiles))
	if err != nil {
		return err
	}
	if err := measure.AwaitReady(ctx, e.process, fmt.Sprintf("http://127.0.0.1:%d/readyz", health)); err != nil {
		return fmt.Errorf("wait for the flow to become ready: %w", err)
	}
	return nil
}

func (e *emitter) stop() error { return e.process.Stop(stopTimeout) }

func (e *emitter) err() error { return e.process.Err() }

// cpu returns the CPU time that the process has used.
func (e *emitter) cpu() (time.Duration, error) { return measure.CPUOf(e.process.PID()) }

// memory is the memory of the flow, in bytes.
type memory struct {
	// Heap is the live part of Go's heap after a garbage collection, and Resident the resident memory.
	Heap     int64 `json:"heap"`
	Resident int64 `json:"resident"`
}

// memory collects garbage and returns the memory of the process afterwards. It writes the heap profile to a file
// if profiles are requested.
func (e *emitter) memory(ctx context.Context, name string) (memory, error) {
	var profile bytes.Buffer
	for range 2 { // objects with finalizers are freed by the second collection
		profile.Reset()
		if err := measure.Fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/heap?gc=1", e.profiles), &profile); err != nil {
			return memory{}, fmt.Errorf("collect the garbage of the flow: %w", err)
		}
	}
	if e.options.Profile != "" {
		if err := os.MkdirAll(e.options.Profile, 0o750); err != nil {
			return memory{}, fmt.Errorf("create the directory of profiles: %w", err)
		}
		if err := os.WriteFile(filepath.Join(e.options.Profile, "flow-"+name+"-heap.pprof"), profile.Bytes(), 0o600); err != nil {
			return memory{}, fmt.Errorf("save the profile of the flow: %w", err)
		}
	}
	metrics, err := e.readMetrics(ctx)
	if err != nil {
		return memory{}, err
	}
	heap, err := measure.ParseMetric(metrics, "go_memstats_heap_alloc_bytes")
	if err != nil {
		return memory{}, err
	}
	of, err := measure.MemoryOf(e.process.PID())
	return memory{Heap: heap, Resident: of.RSS}, err
}

// passes returns the number of reconciliations by the flow.
func (e *emitter) passes(ctx context.Context) (int64, error) {
	metrics, err := e.readMetrics(ctx)
	if err != nil {
		return 0, err
	}
	return measure.SumMetric(metrics, "controller_runtime_reconcile_total")
}

func (e *emitter) readMetrics(ctx context.Context) (string, error) {
	var metrics strings.Builder
	if err := measure.Fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", e.metrics), &metrics); err != nil {
		return "", fmt.Errorf("read the metrics of the flow: %w", err)
	}
	return metrics.String(), nil
}
