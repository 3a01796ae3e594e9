package main

import (
	"context"
	"fmt"
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
	metrics int
	starts  int
	started time.Time
}

// start starts the flow in a version of its program.
func (e *emitter) start(ctx context.Context, version string) error {
	health, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	if e.metrics, err = controlplane.FreePort(); err != nil {
		return err
	}
	e.starts++
	e.started = time.Now()
	e.process, err = e.cp.StartProcess(fmt.Sprintf("sites-%d", e.starts), e.options.Sites,
		"--kubeconfig", e.cp.Dir()+"/kubeconfig", "--version", version, "--qps", "-1",
		"--workers", fmt.Sprint(e.options.Workers), "--budget", fmt.Sprint(e.options.Budget), "--retry", e.options.Retry.String(),
		"--health-address", fmt.Sprintf("127.0.0.1:%d", health), "--metrics-address", fmt.Sprintf("127.0.0.1:%d", e.metrics))
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

// resident returns the resident memory, in bytes.
func (e *emitter) resident() (int64, error) {
	memory, err := measure.MemoryOf(e.process.PID())
	return memory.RSS, err
}

// passes returns how often the flow's function has run.
func (e *emitter) passes(ctx context.Context) (int64, error) {
	var metrics strings.Builder
	if err := measure.Fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", e.metrics), &metrics); err != nil {
		return 0, fmt.Errorf("read the metrics of the flow: %w", err)
	}
	return measure.SumMetric(metrics.String(), "controller_runtime_reconcile_total")
}
