package landscape

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trellis-k8s/trellis/test/landscape/build"
	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

const (
	// startTimeout is how long the cluster may take to become ready on a busy machine.
	startTimeout = 5 * time.Minute
	poll         = 100 * time.Millisecond
)

// controlPlane are the programs that hack/build-controlplane.sh builds.
var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

// baseImages are the images that every landscape has.
var baseImages = []string{
	"pause", "coredns", "probe", "resource-manager", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
}

// Up builds missing programs, starts the base cluster, and returns when it is ready. If the cluster is running, Up updates
// its images and manifests.
func (l *Landscape) Up(ctx context.Context) error {
	if l.otherPrograms {
		return fmt.Errorf("the landscape in %s runs built programs: remove it before you start it with those of the distribution",
			l.Directory)
	}
	if err := l.Preflight(ctx); err != nil {
		return err
	}
	if err := l.Build(ctx); err != nil {
		return err
	}
	began := l.now()
	running, err := l.Running()
	if err != nil {
		return err
	}
	if running {
		err = l.makeImages(slices.Clone(baseImages)) // programs might have changed
	} else {
		err = l.start(ctx)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error { return l.bringImages(groupContext) })
	group.Go(func() error { return l.deploy(groupContext, began) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("the base cluster is not ready: %w (logs are in %s)", err, l.path("logs"))
	}
	l.say("The base cluster is ready after %s.", l.since(began))
	return os.WriteFile(l.path(readyFile), nil, 0o600)
}

func (l *Landscape) since(began time.Time) time.Duration {
	return l.now().Sub(began).Round(100 * time.Millisecond)
}

// Build builds the missing programs of the base cluster.
func (l *Landscape) Build(ctx context.Context) error {
	for _, name := range controlPlane {
		if _, err := os.Stat(filepath.Join(l.Root, "bin", name)); err != nil {
			return fmt.Errorf("bin/%s is not built: run `make controlplane`", name)
		}
	}
	programs := build.Upstream()
	if !l.Distribution {
		programs = append(programs, build.Containers()...)
	}
	missing, err := l.builder.Missing(programs)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		l.say("Building %d programs. You can interrupt the build: finished programs are kept.", len(missing))
	}
	if err := l.builder.Build(ctx, append(programs, build.Own()...)); err != nil || !l.Distribution {
		return err
	}
	return l.takeDistribution(ctx)
}

// start starts the machine with all services.
func (l *Landscape) start(ctx context.Context) error {
	// The remains of an interrupted start would be in the way.
	if err := machine.Remove(ctx, l.name); err != nil {
		return fmt.Errorf("removing the remains of an earlier start: %w", err)
	}
	if err := l.chooseNetwork(); err != nil {
		return err
	}
	if err := l.makeDirectory(); err != nil {
		return err
	}
	if err := l.clear(); err != nil {
		return err
	}
	if err := l.raiseLimits(); err != nil {
		return err
	}
	if err := l.makeImages(slices.Clone(baseImages)); err != nil {
		return err
	}
	if err := l.removeOldImages(); err != nil {
		return err
	}
	if err := l.writeFiles(); err != nil {
		return err
	}
	files, err := l.controlPlaneFiles()
	if err != nil {
		return err
	}
	l.say("Starting the base cluster, with the addresses %s, in %s.", l.Network.Block(), l.Directory)
	return machine.Start(ctx, l.builder.Path("landscape"), &machine.Config{
		Name: l.name, Hostname: Node, Directory: l.Directory, Images: l.imagesDirectory(), Programs: l.programs(), Files: files,
		Host: l.Network.Host(), Machine: l.Network.Machine(), Services: l.services(),
		Routes: []netip.Prefix{l.Network.Block()},
	})
}

// readyFile exists once the base cluster has been ready.
const readyFile = "ready"

// clear removes the remains of an interrupted start. An etcd that was killed while it created its files does not start
// again.
func (l *Landscape) clear() error {
	if _, err := os.Stat(l.path(readyFile)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(l.Directory)
	if err != nil {
		return fmt.Errorf("removing the remains of an earlier start: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(l.path(entry.Name())); err != nil {
			return fmt.Errorf("removing the remains of an earlier start: %w", err)
		}
	}
	return nil
}

// controlPlaneFiles returns the programs of the control plane. They may be links to other files, so links are resolved.
func (l *Landscape) controlPlaneFiles() (map[string]string, error) {
	files := map[string]string{}
	for _, name := range controlPlane {
		path, err := filepath.EvalSymlinks(filepath.Join(l.Root, "bin", name))
		if err != nil {
			return nil, fmt.Errorf("finding the program %s: %w", name, err)
		}
		files[name] = path
	}
	return files, nil
}

// bringImages imports the images that the start needs, and passes the list of all images to the registry.
func (l *Landscape) bringImages(ctx context.Context) error {
	if err := l.waitFor(ctx, "containerd", func() error {
		_, err := l.ctr(ctx, nil, "version")
		return err
	}); err != nil {
		return err
	}
	if err := l.importImages(ctx, essential); err != nil {
		return err
	}
	return l.announce(ctx)
}

// announce passes the list of all images to the registry.
func (l *Landscape) announce(ctx context.Context) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	all, err := store.Images()
	if err != nil {
		return err
	}
	references := slices.Sorted(maps.Keys(all))
	return l.waitFor(ctx, "registry", func() error { return store.Announce(ctx, l.Registry(), references) })
}

// Push builds a program of the project or of a component, creates and imports its image, and returns its reference.
func (l *Landscape) Push(ctx context.Context, name string) (string, error) {
	r, known := recipes[name]
	if !known {
		return "", fmt.Errorf("no recipe creates the image %q: choose one of %s", name, strings.Join(Names(), ", "))
	}
	if err := l.buildProgram(ctx, r); err != nil {
		return "", err
	}
	if err := l.makeImages([]string{name}); err != nil {
		return "", err
	}
	if err := l.importImages(ctx, []string{name}); err != nil {
		return "", err
	}
	if err := l.announce(ctx); err != nil {
		return "", err
	}
	return l.reference(name)
}

// buildProgram builds the program of an image, if it belongs to the project or to a component.
func (l *Landscape) buildProgram(ctx context.Context, r recipe) error {
	for _, p := range append(build.Own(), build.Components()...) {
		if "landscape/"+p.Name == r.program {
			return l.builder.Build(ctx, []build.Program{p})
		}
	}
	return nil
}

// waitFor retries until try succeeds or the context ends. The error includes the end of the service's log.
func (l *Landscape) waitFor(ctx context.Context, service string, try func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w\n%s", service, last, l.Tail(service))
		case <-tick.C:
		}
	}
}
