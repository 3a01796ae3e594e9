package main

import (
	"fmt"
	"path/filepath"

	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

// gateway is the measured process.
type gateway struct {
	*measure.Program

	// address is where connections with TLS are accepted.
	address string
}

func newGateway(cp *controlplane.ControlPlane, binary string) *gateway {
	g := &gateway{Program: &measure.Program{Name: "gateway", Binary: binary, Cluster: cp}}
	g.Args = func(_ string, health, metrics int) ([]string, error) {
		port, err := controlplane.FreePort()
		if err != nil {
			return nil, err
		}
		local := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
		g.address = local(port)
		return []string{
			"--kubeconfig", filepath.Join(cp.Dir(), "kubeconfig"), "--gateway", namespace + "/" + apiserverexposure.GatewayName, "--service", service,
			"--tls-address", g.address, "--connect-address", "", "--health-address", local(health), "--metrics-address", local(metrics),
			"--shutdown-delay", "0s", "--drain-timeout", "1s",
		}, nil
	}
	return g
}
