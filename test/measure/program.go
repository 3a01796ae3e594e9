package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// Program is a program that is measured, as a process beside a control plane.
type Program struct {
	Profiler

	// Name is the prefix of its file names, and Binary its path.
	Name, Binary string
	// Cluster stops the process when it stops.
	Cluster *controlplane.ControlPlane
	// Environment has further variables, such as "HTTPS_PROXY=http://127.0.0.1:4711".
	Environment []string
	// Args returns the arguments for the ports of health checks and metrics on 127.0.0.1. name is different for each start.
	Args func(name string, health, metrics int) ([]string, error)

	process *controlplane.Process
	starts  int
}

// ProgramMemory is the memory of a program, in bytes: the resident memory of the process, and the parts of Go's heap and of the stacks of goroutines
// that are in use.
type ProgramMemory struct {
	Resident int64 `json:"resident"`
	Heap     int64 `json:"heap"`
	Stacks   int64 `json:"stacks"`
}

// Start starts the program, and returns the time until it is ready.
func (p *Program) Start(ctx context.Context) (time.Duration, error) {
	health, err := controlplane.FreePort()
	if err != nil {
		return 0, err
	}
	if p.metrics, err = controlplane.FreePort(); err != nil {
		return 0, err
	}
	p.starts++
	name := fmt.Sprintf("%s-%d", p.Name, p.starts)
	args, err := p.Args(name, health, p.metrics)
	if err != nil {
		return 0, fmt.Errorf("configure %s: %w", p.Name, err)
	}
	began := time.Now()
	if p.process, err = p.Cluster.StartProcessWith(p.Environment, name, p.Binary, args...); err != nil {
		return 0, err
	}
	if err := AwaitReady(ctx, p.process, fmt.Sprintf("http://127.0.0.1:%d/readyz", health)); err != nil {
		return 0, fmt.Errorf("wait for %s to become ready: %w", p.Name, err)
	}
	return time.Since(began), nil
}

// Stop stops the program as a cluster would, if it runs.
func (p *Program) Stop() error {
	if p.process == nil {
		return nil
	}
	defer func() { p.process = nil }()
	return p.process.Stop(stopTimeout)
}

// Memory returns the memory of the running program.
func (p *Program) Memory(ctx context.Context) (ProgramMemory, error) {
	text, err := p.Metrics(ctx)
	if err != nil {
		return ProgramMemory{}, err
	}
	heap, err := ParseMetric(text, "go_memstats_heap_inuse_bytes")
	if err != nil {
		return ProgramMemory{}, err
	}
	stacks, err := ParseMetric(text, "go_memstats_stack_inuse_bytes")
	if err != nil {
		return ProgramMemory{}, err
	}
	of, err := MemoryOf(p.process.PID())
	return ProgramMemory{Resident: of.RSS, Heap: heap, Stacks: stacks}, err
}

// CPU returns the CPU time that the running process has used.
func (p *Program) CPU() (time.Duration, error) { return CPUOf(p.process.PID()) }

// Metrics returns the metrics of the running program in the text format of Prometheus.
func (p *Program) Metrics(ctx context.Context) (string, error) {
	var text strings.Builder
	if err := Fetch(ctx, p.metricsURL("/metrics"), &text); err != nil {
		return "", fmt.Errorf("read the metrics of %s: %w", p.Name, err)
	}
	return text.String(), nil
}

// ConfigFile writes a configuration file into a directory, and returns the arguments of a program that reads it.
func ConfigFile(directory, name, text string) ([]string, error) {
	file := filepath.Join(directory, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{"--config", file}, nil
}
