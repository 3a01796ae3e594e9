package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/build"
	"github.com/trellis-k8s/trellis/test/landscape/conformance"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

const (
	// shootTimeout limits the creation of the Shoot, whose machines pull all images.
	shootTimeout = 15 * time.Minute
	poll         = 2 * time.Second
	// validity is that of the kubeconfig of the Shoot: as long as any run takes.
	validity = 12 * time.Hour
	// machines is the number of nodes of the Shoot: several conformance tests need two.
	machines = 2
)

// shootKey identifies the Shoot that is tested.
var shootKey = client.ObjectKey{Namespace: "garden-dev", Name: "conform"}

// target is the tested cluster.
type target struct {
	kubeconfig, repositories string
	// arguments are further arguments of e2e.test.
	arguments []string
	// cleanups remove what was started, the last one first.
	cleanups []func(context.Context) error
}

func (t *target) close(ctx context.Context) error {
	var errs []error
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		errs = append(errs, t.cleanups[i](ctx))
	}
	return errors.Join(errs...)
}

// target provides the cluster. The target can be closed even if there is an error.
func (o *options) target(ctx context.Context, program string, progress io.Writer) (*target, error) {
	t := &target{kubeconfig: o.kubeconfig, repositories: o.repositories}
	if o.cluster == otherCluster {
		return t, nil
	}
	l, err := landscape.New(landscape.Options{
		Root: o.root, Directory: filepath.Join(o.root, ".run", "landscape"), Block: o.block, Distribution: o.distribution,
		InstallPackages: o.installPackages, Out: progress,
	})
	if err != nil {
		return t, err
	}
	was, err := l.Running()
	if err != nil {
		return t, err
	}
	if !was && !o.keep {
		t.cleanups = append(t.cleanups, func(ctx context.Context) error {
			fmt.Fprintln(progress, "Removing the landscape.")
			return l.Down(ctx)
		})
	} else {
		t.cleanups = append(t.cleanups, func(context.Context) error {
			fmt.Fprintln(progress, "The landscape keeps running. Remove it with: make landscape-down")
			return nil
		})
	}
	if err := l.Up(ctx); err != nil {
		return t, err
	}
	if err := o.offerImages(ctx, l, program, t, progress); err != nil {
		return t, err
	}
	if o.cluster == baseCluster {
		t.kubeconfig = l.Kubeconfig()
		return t, nil
	}
	if err := l.MachineImages(ctx); err != nil {
		return t, err
	}
	if o.build {
		return t, nil
	}
	return t, o.shoot(ctx, l, t, progress)
}

// offerImages makes the images of the tests, and offers them in the registry of the landscape.
func (o *options) offerImages(ctx context.Context, l *landscape.Landscape, program string, t *target, progress io.Writer) error {
	t.repositories = filepath.Join(o.directory, "repositories.yaml")
	if err := os.WriteFile(t.repositories, conformance.Repositories(landscape.RegistryName), 0o600); err != nil {
		return fmt.Errorf("writing the registries of images: %w", err)
	}
	references, err := conformance.References(ctx, program, t.repositories)
	if err != nil {
		return err
	}
	sources, err := l.ConformanceSources(ctx, filepath.Join(o.root, build.ConformanceDirectory))
	if err != nil {
		return err
	}
	specs, missing := conformance.Specs(sources, landscape.RegistryName, references)
	fmt.Fprintf(progress, "Offering %d images. Tests that need one of %d further images cannot run (docs/conformance.md).\n", len(specs), len(missing))
	return l.Offer(ctx, specs)
}

// shoot installs the fleet, and creates a Shoot with nodes.
func (o *options) shoot(ctx context.Context, l *landscape.Landscape, t *target, progress io.Writer) error {
	f, err := fleet.New(l, func(format string, arguments ...any) { fmt.Fprintf(progress, format+"\n", arguments...) })
	if err != nil {
		return err
	}
	for _, object := range fleet.RequestsPolicy() {
		if err := f.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("reducing the requests of control planes: %w", err)
		}
	}
	if err := f.Up(ctx); err != nil {
		return err
	}
	shoot, err := f.ShootWithNodes(ctx, shootKey, machines)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "Creating Shoot %s with %d nodes.\n", shootKey, machines)
	began := time.Now()
	if err := f.Create(ctx, shoot); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Shoot %s: %w", shootKey, err)
	}
	if err := await(ctx, func() error { return f.NodesAreReady(ctx, shootKey) }); err != nil {
		return fmt.Errorf("waiting for the nodes of Shoot %s: %w", shootKey, err)
	}
	fmt.Fprintf(progress, "The Shoot and its nodes are ready after %s.\n", time.Since(began).Round(time.Second))
	return o.connect(ctx, f, t, progress)
}

// await retries until try succeeds, for shootTimeout.
func await(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, shootTimeout)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// connect waits for the system components of the Shoot, and writes a kubeconfig. It connects through a local port: the tests override the server's name that a
// certificate is checked for, and the certificate of the API server is valid for 127.0.0.1, but not for its Service in the seed.
func (o *options) connect(ctx context.Context, f *fleet.Fleet, t *target, progress io.Writer) error {
	config, err := f.Kubeconfig(ctx, shootKey, validity)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		local, stop, err := forward(cluster.Server)
		if err != nil {
			return err
		}
		t.cleanups = append(t.cleanups, func(context.Context) error { return stop() })
		cluster.Server, cluster.TLSServerName = local, ""
	}
	t.kubeconfig = filepath.Join(o.directory, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, t.kubeconfig); err != nil {
		return fmt.Errorf("writing the kubeconfig of the Shoot: %w", err)
	}
	t.arguments = withoutImages
	connection, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("connecting to the Shoot: %w", err)
	}
	if err := awaitComponents(ctx, connection); err != nil {
		return err
	}
	if err := removeMetrics(ctx, f, connection); err != nil {
		fmt.Fprintf(progress, "Tests that wait until a namespace is deleted will fail: %v\n", err)
	}
	return nil
}
