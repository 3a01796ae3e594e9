package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/measure"
)

const stopTimeout = 30 * time.Second

// configuration is the file of a program: its group and kind, its connection to the garden, and the ports of health and metrics.
const configuration = `apiVersion: %s.config.gardener.cloud/v1alpha1
kind: %sConfiguration
%s: {kubeconfig: %s%s}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
`

// program is a measured program.
type program struct {
	// name is that of its binary, and agent the first word of its user agent.
	name, agent string
	// group and kind are the beginnings of those of its configuration file, and connection is the field in it with the kubeconfig.
	group, kind, connection string
	// limits are further fields of the connection.
	limits string

	garden  *garden.Garden
	path    string
	process *controlplane.Process
	starts  int
}

// programs are the measured programs.
func programs(plane *garden.Garden, directory string, qps float64) []*program {
	all := []*program{
		{name: "controller-manager", agent: "controller-manager", group: "controllermanager", kind: "ControllerManager", connection: "gardenClientConnection"},
		{name: "scheduler", agent: "gardener-scheduler", group: "scheduler", kind: "Scheduler", connection: "clientConnection",
			limits: fmt.Sprintf(", qps: %g, burst: %d", qps, 2*int(math.Ceil(qps)))},
	}
	for _, one := range all {
		one.garden, one.path = plane, filepath.Join(directory, one.name)
	}
	return all
}

// start starts the program and waits until it is ready.
func (p *program) start(ctx context.Context) error {
	var ports [2]int
	for i := range ports {
		port, err := controlplane.FreePort()
		if err != nil {
			return err
		}
		ports[i] = port
	}
	p.starts++
	name := fmt.Sprintf("%s-%d", p.name, p.starts)
	file := filepath.Join(p.garden.Dir(), name+".yaml")
	text := fmt.Appendf(nil, configuration, p.group, p.kind, p.connection, filepath.Join(p.garden.Dir(), "kubeconfig"), p.limits, ports[0], ports[1])
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("configure the %s: %w", p.name, err)
	}
	var err error
	if p.process, err = p.garden.StartProcess(name, p.path, "--config", file); err != nil {
		return err
	}
	if err := measure.AwaitReady(ctx, p.process, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[0])); err != nil {
		return fmt.Errorf("wait for the %s to become ready: %w", p.name, err)
	}
	return nil
}

// stop stops the program as a cluster would.
func (p *program) stop() error { return p.process.Stop(stopTimeout) }

// sent reports whether the program sent a request that counts.
func (p *program) sent(request measure.Request) bool {
	return request.Client == p.agent && request.Counts()
}
