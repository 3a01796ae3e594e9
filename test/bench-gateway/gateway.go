package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

const stopTimeout = 30 * time.Second

// gateway is the measured process.
type gateway struct {
	cp     *controlplane.ControlPlane
	binary string
	// address is where connections with TLS are accepted.
	address string

	process *controlplane.Process
	metrics int
	starts  int
}

// memory is the memory of the gateway, in bytes: the resident memory of the process, and the live part of Go's heap.
type memory struct {
	Resident int64 `json:"resident"`
	Heap     int64 `json:"heap"`
}

// start starts the gateway, and returns the time until it is ready.
func (g *gateway) start(ctx context.Context) (time.Duration, error) {
	var ports [3]int
	for i := range ports {
		port, err := controlplane.FreePort()
		if err != nil {
			return 0, err
		}
		ports[i] = port
	}
	local := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	g.address, g.metrics = local(ports[0]), ports[2]
	g.starts++
	began := time.Now()
	var err error
	g.process, err = g.cp.StartProcess(fmt.Sprintf("gateway-%d", g.starts), g.binary,
		"--kubeconfig", filepath.Join(g.cp.Dir(), "kubeconfig"), "--gateway", namespace+"/"+apiserverexposure.GatewayName, "--service", service,
		"--tls-address", g.address, "--connect-address", "", "--health-address", local(ports[1]), "--metrics-address", local(g.metrics),
		"--shutdown-delay", "0s", "--drain-timeout", "1s")
	if err != nil {
		return 0, err
	}
	if err := measure.AwaitReady(ctx, g.process, "http://"+local(ports[1])+"/readyz"); err != nil {
		return 0, fmt.Errorf("wait for the gateway to become ready: %w", err)
	}
	return time.Since(began), nil
}

// stop stops the gateway, if it runs.
func (g *gateway) stop() error {
	if g.process == nil {
		return nil
	}
	defer func() { g.process = nil }()
	return g.process.Stop(stopTimeout)
}

// memory returns the memory of the process.
func (g *gateway) memory(ctx context.Context) (memory, error) {
	var text strings.Builder
	if err := measure.Fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", g.metrics), &text); err != nil {
		return memory{}, fmt.Errorf("read the metrics of the gateway: %w", err)
	}
	heap, err := measure.ParseMetric(text.String(), "go_memstats_heap_inuse_bytes")
	if err != nil {
		return memory{}, err
	}
	of, err := measure.MemoryOf(g.process.PID())
	return memory{Resident: of.RSS, Heap: heap}, err
}
