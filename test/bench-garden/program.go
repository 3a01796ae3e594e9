package main

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/measure"
)

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
	*measure.Program

	// agent is the first word of its user agent.
	agent string
	// group and kind are the beginnings of those of its configuration file, and connection is the field in it with the kubeconfig.
	group, kind, connection string
	// limits are further fields of the connection.
	limits string
}

// programs are the measured programs.
func programs(plane *garden.Garden, directory string, qps float64) []*program {
	all := []*program{
		{
			Program: &measure.Program{Name: "controller-manager"}, agent: "controller-manager", group: "controllermanager", kind: "ControllerManager",
			connection: "gardenClientConnection",
		},
		{
			Program: &measure.Program{Name: "scheduler"}, agent: "gardener-scheduler", group: "scheduler", kind: "Scheduler", connection: "clientConnection",
			limits: fmt.Sprintf(", qps: %g, burst: %d", qps, 2*int(math.Ceil(qps))),
		},
	}
	for _, one := range all {
		one.Cluster, one.Binary = plane.ControlPlane, filepath.Join(directory, one.Name)
		one.Args = func(name string, health, metrics int) ([]string, error) {
			kubeconfig := filepath.Join(plane.Dir(), "kubeconfig")
			return measure.ConfigFile(plane.Dir(), name,
				fmt.Sprintf(configuration, one.group, one.kind, one.connection, kubeconfig, one.limits, health, metrics))
		}
	}
	return all
}

// sent reports whether the program sent a request that counts.
func (p *program) sent(request measure.Request) bool {
	return request.Client == p.agent && request.Counts()
}
