package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
)

const (
	serveCommand   = "serve"
	servingMessage = "serving"
	// progressDescriptor is the first of exec.Cmd.ExtraFiles.
	progressDescriptor = 3

	resourceManagerProgram   = "resource-manager"
	apiServerProgram         = "apiserver"
	controllerManagerProgram = "controller-manager"
	// gardenIdentity is the identity of the demo's garden.
	gardenIdentity = "demo"

	nodes        = 3
	readyTimeout = time.Minute
)

const resourceManagerConfig = `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
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
logLevel: info
logFormat: text
`

const controllerManagerConfig = `apiVersion: controllermanager.config.gardener.cloud/v1alpha1
kind: ControllerManagerConfiguration
gardenClientConnection:
  kubeconfig: %q
leaderElection:
  leaderElect: false
server:
  healthProbes:
    bindAddress: 127.0.0.1
    port: %d
  metrics:
    bindAddress: 127.0.0.1
    port: %d
logLevel: info
logFormat: text
`

// serve runs in the background process. It runs the control plane, the resource-manager and the garden's controller-manager
// until it receives a signal or one of them ends. Its parent reads the progress. If the parent exits early, writing the progress fails and
// everything is stopped.
func (d *demo) serve(ctx context.Context) (err error) {
	pidFile, err := d.lock()
	if err != nil {
		return err
	}
	defer pidFile.Close() //nolint:errcheck // this ends the lock, the content is written
	progress := os.NewFile(progressDescriptor, "progress")

	const starting = "Starting Kubernetes with %d simulated nodes, this takes about 5 seconds (a minute on a busy machine).\n"
	if _, err := fmt.Fprintf(progress, starting, nodes); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	options := controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: nodes, Dir: d.dir, Log: progress}
	if d.controlPlaneOnly {
		cp, err := controlplane.Start(ctx, options)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cp.Stop()) }()
		return d.hold(ctx, progress, nil, nil)
	}
	g, err := garden.Start(ctx, garden.Options{
		ControlPlane: options, APIServer: d.program(apiServerProgram), Identity: gardenIdentity, Dir: d.path("garden"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	if _, err := fmt.Fprintln(progress, "Installing the CRDs and starting the resource-manager, this takes a few seconds."); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	if err := installCRDs(ctx, g.Config(), filepath.Join(d.root, "config", "crd")); err != nil {
		return err
	}
	resourceManager, err := d.startManager(ctx, g.ControlPlane, progress, resourceManagerProgram, resourceManagerConfig)
	if err != nil {
		return err
	}
	controllerManager, err := d.startManager(ctx, g.ControlPlane, progress, controllerManagerProgram, controllerManagerConfig)
	if err != nil {
		return err
	}
	return d.hold(ctx, progress, resourceManager, controllerManager)
}

// hold reports that everything runs, and waits until the context or one of the processes ends. Both may be nil.
func (d *demo) hold(ctx context.Context, progress *os.File, resourceManager, controllerManager *controlplane.Process) error {
	ended := func(process *controlplane.Process) <-chan struct{} {
		if process == nil {
			return nil // never
		}
		return process.Done()
	}
	_, err := fmt.Fprintln(progress, servingMessage)
	if err := errors.Join(err, progress.Close()); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}

	select {
	case <-ctx.Done():
		return nil
	case <-ended(resourceManager):
		return resourceManager.Err()
	case <-ended(controllerManager):
		return controllerManager.Err()
	}
}

func (d *demo) program(name string) string { return filepath.Join(d.root, "bin", name) }

// startManager starts a program with a configuration for its kubeconfig and ports, and waits until it is ready.
func (d *demo) startManager(
	ctx context.Context, cp *controlplane.ControlPlane, progress *os.File, program, config string,
) (*controlplane.Process, error) {
	healthPort, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	metricsPort, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	file := d.path(program + ".yaml")
	content := fmt.Sprintf(config, d.path("kubeconfig"), healthPort, metricsPort)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of the %s: %w", program, err)
	}
	process, err := cp.StartProcess(program, d.program(program), "--config", file)
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, process, program, fmt.Sprintf("http://127.0.0.1:%d/readyz", healthPort)); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(progress, "%s ready (metrics at http://127.0.0.1:%d/metrics)\n", program, metricsPort)
	return process, err
}

// awaitReady polls a URL until it responds with status 200. It returns early if the process ends.
func awaitReady(ctx context.Context, process *controlplane.Process, program, url string) error {
	last := errors.New("no response")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := process.Err(); err != nil {
			return false, err
		}
		last = get(ctx, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the %s to become ready: %w", program, errors.Join(err, last))
	}
	return nil
}

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
