package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

// phase holds the measurements of one phase.
type phase struct {
	Name    string  `json:"name"`
	Objects int     `json:"objects"`
	Seconds float64 `json:"seconds"`
	// Requests are the requests of the resource-manager, by verb and resource.
	Requests measure.Tally `json:"requests,omitempty"`
	// CPUSeconds is the CPU time of all involved programs, by program.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// ManagerCPUSeconds is the CPU time of the resource-manager.
	ManagerCPUSeconds float64 `json:"managerCPUSeconds"`
	// ForeignCPUs is the average number of the machine's CPUs that other programs kept busy during the phase.
	ForeignCPUs float64 `json:"foreignCPUs"`

	started    time.Time
	startUsage measure.Usage
	startCPU   time.Duration
}

// rate returns objects per second.
func (p phase) rate() float64 {
	if p.Seconds == 0 {
		return 0
	}
	return float64(p.Objects) / p.Seconds
}

// rateOfCPU returns objects per second of CPU time of all involved programs.
func (p phase) rateOfCPU() float64 {
	var seconds float64
	for _, cpu := range p.CPUSeconds {
		seconds += cpu
	}
	if seconds == 0 {
		return 0
	}
	return float64(p.Objects) / seconds
}

// limits are the measurements of the bare client.
type limits struct {
	Create phase `json:"create"`
	Update phase `json:"update"`
}

// restart is a start with all objects present and unchanged.
type restart struct {
	ReadySeconds float64 `json:"readySeconds"`
	// IdleSeconds is the time until the last request.
	IdleSeconds float64       `json:"idleSeconds"`
	Requests    measure.Tally `json:"requests"`
}

// driftResult reports how soon changed ConfigMaps were corrected.
type driftResult struct {
	phase
	Changed int `json:"changed"`
	PutBack int `json:"putBack"`
	// P50Seconds and P99Seconds are nil if they exceed TimeoutSeconds.
	P50Seconds     *float64 `json:"p50Seconds,omitempty"`
	P99Seconds     *float64 `json:"p99Seconds,omitempty"`
	TimeoutSeconds float64  `json:"timeoutSeconds"`
}

func driftOf(measured phase, times []time.Duration, changed int, timeout time.Duration) *driftResult {
	result := &driftResult{phase: measured, Changed: changed, PutBack: len(times), TimeoutSeconds: timeout.Seconds()}
	for share, into := range map[float64]**float64{0.5: &result.P50Seconds, 0.99: &result.P99Seconds} {
		if value, ok := percentile(times, changed, share); ok {
			seconds := value.Seconds()
			*into = &seconds
		}
	}
	return result
}

// results are all measurements of a run.
type results struct {
	Version    string    `json:"version"`
	Kubernetes string    `json:"kubernetes"`
	CPUs       int       `json:"cpus"`
	Began      time.Time `json:"began"`
	Options    options   `json:"options"`

	// Limits are measured before and after each of Creates and the update that follows it.
	Limits  []limits     `json:"limits,omitempty"`
	Creates []phase      `json:"creates,omitempty"`
	Updates []phase      `json:"updates,omitempty"`
	Restart *restart     `json:"restart,omitempty"`
	Rest    *phase       `json:"rest,omitempty"`
	Drift   *driftResult `json:"drift,omitempty"`
	Delete  *phase       `json:"delete,omitempty"`

	// RestBytes is the resident memory of the resource-manager after the rest, HeapBytes the part that Go's heap
	// uses, and PeakBytes the peak of the resident memory.
	RestBytes int64 `json:"restBytes,omitempty"`
	HeapBytes int64 `json:"heapBytes,omitempty"`
	PeakBytes int64 `json:"peakBytes,omitempty"`

	Rows []row `json:"rows"`
}

func newResults(ctx context.Context, opts options, cp *controlplane.ControlPlane) (results, error) {
	version, err := exec.CommandContext(ctx, opts.Binary, "--version").Output() //nolint:gosec // the program to measure
	if err != nil {
		return results{}, fmt.Errorf("get the version of %s (make build builds it): %w", opts.Binary, err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(measure.WithAgent(cp.Config(), "user"))
	if err != nil {
		return results{}, fmt.Errorf("create a discovery client: %w", err)
	}
	kubernetes, err := client.ServerVersion()
	if err != nil {
		return results{}, fmt.Errorf("get the version of Kubernetes: %w", err)
	}
	return results{
		Version: strings.TrimSpace(string(version)), Kubernetes: kubernetes.String(), CPUs: runtime.NumCPU(),
		Began: time.Now().UTC().Truncate(time.Second), Options: opts,
	}, nil
}

// limit returns the measurements of the bare client over all its runs.
func (r *results) limit(of func(limits) phase) phase {
	var phases []phase
	for _, limits := range r.Limits {
		phases = append(phases, of(limits))
	}
	return sumOf(phases)
}

func createOf(l limits) phase { return l.Create }

func updateOf(l limits) phase { return l.Update }

// sumOf adds up phases.
func sumOf(phases []phase) phase {
	sum := phase{Requests: measure.Tally{}, CPUSeconds: map[string]float64{}}
	for _, phase := range phases {
		sum.Objects += phase.Objects
		sum.Seconds += phase.Seconds
		sum.Requests = sum.Requests.Add(phase.Requests)
		for program, cpu := range phase.CPUSeconds {
			sum.CPUSeconds[program] += cpu
		}
	}
	return sum
}

// readBase reads the results of a run with fewer objects. It returns nil if the path is empty.
func readBase(path string) (*results, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read --base: %w", err)
	}
	base := &results{}
	if err := json.Unmarshal(content, base); err != nil {
		return nil, fmt.Errorf("read --base %s: %w", path, err)
	}
	if base.RestBytes == 0 {
		return nil, errors.New("read --base " + path + ": the file has no memory at rest")
	}
	return base, nil
}
