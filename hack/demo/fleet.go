package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/hack/demo/controlplanes"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
)

const (
	// gardenIdentity is the identity of the demo's garden.
	gardenIdentity = "demo"
	// internalDomain is the domain of the API servers of Shoots.
	internalDomain = "internal.example.org"

	apiServerProgram = "apiserver"
	// proxyName is the file with the address of the proxy to the API servers of Shoots.
	proxyName = "proxy"

	stopGrace = 10 * time.Second
)

// configs are the configuration files of the programs. In them, $GARDEN and $SEED are the kubeconfigs of both clusters.
//
//go:embed config
var configs embed.FS

// programs run next to the clusters, in this order. Their configuration file and their log have the same name.
var programs = []struct{ name, binary, does string }{
	{"resource-manager", "resource-manager", "applies ManagedResources in the garden"},
	{"controller-manager", "controller-manager", "runs the garden's controllers"},
	{"scheduler", "scheduler", "finds Seeds for Shoots"},
	{"seed-resource-manager", "resource-manager", "applies ManagedResources in the Seed"},
	{"gardenlet", "gardenlet", "makes the Seed and the control planes of Shoots"},
}

// fleet is the running demo.
type fleet struct {
	*demo

	garden    *garden.Garden
	seed      *controlplane.ControlPlane
	proxy     string
	processes []*controlplane.Process
	ended     <-chan error
	progress  io.Writer
}

// startFleet starts the garden, the cluster of the Seed, and all programs. The fleet must be stopped even if there is an error.
func (d *demo) startFleet(ctx context.Context, options controlplane.Options, progress io.Writer) (*fleet, error) {
	f := &fleet{demo: d, progress: progress}
	for _, step := range []struct {
		says string
		do   func(context.Context) error
	}{
		{"", func(ctx context.Context) error { return f.startGarden(ctx, options) }},
		{"Starting the cluster of a Seed, also with simulated nodes.", f.startSeed},
		{"Starting the programs, this takes a few seconds.", f.prepare},
		{"", f.writeAccess},
		{"", f.runControlPlanes},
		{"", f.startPrograms},
	} {
		if step.says != "" {
			if _, err := fmt.Fprintln(progress, step.says); err != nil {
				return f, fmt.Errorf("reporting progress: %w", err)
			}
		}
		if err := step.do(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *fleet) stop() error {
	var errs []error
	for _, process := range slices.Backward(f.processes) { // an API server waits for its watches to end
		errs = append(errs, process.Stop(stopGrace))
	}
	if f.seed != nil {
		errs = append(errs, f.seed.Stop())
	}
	if f.garden != nil {
		errs = append(errs, f.garden.Stop())
	}
	return errors.Join(errs...)
}

func (f *fleet) startGarden(ctx context.Context, options controlplane.Options) (err error) {
	f.garden, err = garden.Start(ctx, garden.Options{
		ControlPlane: options, APIServer: f.program(apiServerProgram), Identity: gardenIdentity, Dir: f.path("garden"),
		ShootRules: true, References: true,
	})
	return err
}

// startSeed starts the cluster of the Seed. Its API server calls no webhooks: the Seed registers those of a Service whose Pods are simulated.
func (f *fleet) startSeed(ctx context.Context) (err error) {
	f.seed, err = controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Scheduler: true, Nodes: nodes, AvailableAtOnce: true, HeldPods: controlplanes.HeldPods, Dir: f.path("seed"), Log: f.progress,
		APIServerArgs: map[string][]string{"disable-admission-plugins": {"MutatingAdmissionWebhook,ValidatingAdmissionWebhook"}},
	})
	return err
}

// runControlPlanes runs the programs of the control planes of Shoots in the background.
func (f *fleet) runControlPlanes(ctx context.Context) (err error) {
	f.proxy, f.ended, err = controlplanes.Start(ctx, controlplanes.Options{
		Cluster: f.seed, Program: f.program, Dir: f.path("shoots"), Domain: internalDomain,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(f.path(proxyName), []byte("http://"+f.proxy), 0o600)
}

func (f *fleet) startPrograms(ctx context.Context) error {
	for _, program := range programs {
		if err := f.startProgram(ctx, program.name, program.binary, program.does); err != nil {
			return err
		}
	}
	return nil
}

// startProgram starts a program with a configuration for the kubeconfigs and its ports, and waits until it is ready.
func (f *fleet) startProgram(ctx context.Context, name, binary, does string) error {
	start := time.Now()
	healthPort, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	metricsPort, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	config, err := configs.ReadFile("config/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("reading the configuration of %s: %w", name, err)
	}
	config = []byte(strings.NewReplacer("$GARDEN", f.path("kubeconfig"), "$SEED", f.path("seed/kubeconfig"), "$DOMAIN", internalDomain,
		"$RESOURCE_MANAGER", f.path(managerKubeconfig),
		"$HEALTH_PORT", strconv.Itoa(healthPort), "$METRICS_PORT", strconv.Itoa(metricsPort)).Replace(string(config)))
	file := f.path(name + ".yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of %s: %w", name, err)
	}
	// A Shoot's API server has a host that exists in the Seed's cluster only.
	process, err := f.garden.StartProcessWith([]string{"HTTPS_PROXY=http://" + f.proxy}, name, f.program(binary), "--config", file)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, process, name, fmt.Sprintf("http://127.0.0.1:%d/readyz", healthPort)); err != nil {
		return err
	}
	f.processes = append(f.processes, process)
	_, err = fmt.Fprintf(f.progress, "%s ready (%.1fs): %s (metrics at http://127.0.0.1:%d/metrics)\n", name, time.Since(start).Seconds(), does, metricsPort)
	return err
}
