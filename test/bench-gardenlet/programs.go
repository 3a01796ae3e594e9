package main

import (
	"fmt"
	"path/filepath"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/measure"
)

// controllerManagerConfig is the configuration of the controller-manager: the kubeconfig of the garden, and the ports of health and metrics.
const controllerManagerConfig = `apiVersion: controllermanager.config.gardener.cloud/v1alpha1
kind: ControllerManagerConfiguration
gardenClientConnection: {kubeconfig: %s, qps: -1}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
`

// gardenletConfig is the configuration of gardenlet: the kubeconfigs of garden and Seed, the ports of health and metrics,
// whether it serves profiles, and the name of the Seed.
const gardenletConfig = `apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection: {kubeconfig: %s}
seedClientConnection: {kubeconfig: %s}
leaderElection: {leaderElect: false}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
debugging: {enableProfiling: %t}
logLevel: info
logFormat: text
seedConfig:
  metadata: {name: %s, annotations: {seed.gardener.cloud/exposure: GatewayAPI}}
  spec:
    provider: {type: local, region: local}
    networks: {nodes: 192.0.2.0/24, pods: 10.64.0.0/16, services: 10.96.0.0/16}
    ingress:
      domain: ingress.bench.example.org
      controller: {kind: nginx}
    dns:
      provider: {type: local, credentialsRef: {apiVersion: v1, kind: Secret, name: dns, namespace: garden}}
      internal:
        type: unmanaged
        domain: internal.example.org
        credentialsRef: {apiVersion: v1, kind: Secret, name: internal-domain, namespace: garden}
`

func newControllerManager(plane *garden.Garden, directory string) *measure.Program {
	return &measure.Program{
		Name: "controller-manager", Binary: filepath.Join(directory, "controller-manager"), Cluster: plane.ControlPlane,
		Args: func(name string, health, metrics int) ([]string, error) {
			return measure.ConfigFile(plane.Dir(), name, fmt.Sprintf(controllerManagerConfig, filepath.Join(plane.Dir(), "kubeconfig"), health, metrics))
		},
	}
}

// newGardenlet returns gardenlet, which reaches the API servers of Shoots through a proxy.
func newGardenlet(plane *garden.Garden, seed *controlplane.ControlPlane, directory, proxy, profile string) *measure.Program {
	return &measure.Program{
		Profiler: measure.Profiler{Profile: profile}, Name: gardenlet, Binary: filepath.Join(directory, gardenlet), Cluster: plane.ControlPlane, Environment: []string{"HTTPS_PROXY=http://" + proxy},
		Args: func(name string, health, metrics int) ([]string, error) {
			return measure.ConfigFile(plane.Dir(), name, fmt.Sprintf(gardenletConfig,
				filepath.Join(plane.Dir(), "kubeconfig"), filepath.Join(seed.Dir(), "kubeconfig"), health, metrics, profile != "", seedName))
		},
	}
}
