package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	// gardenlet is the name of the program, and the first word of its user agent.
	gardenlet = "gardenlet"
	// poll is the period with which Shoots are read, and brisk that for a single one that is changed.
	poll, brisk = time.Second, 10 * time.Millisecond
	// reportEvery is how often progress is printed.
	reportEvery = 30 * time.Second
	// quiet is how long gardenlet must not send requests until it is at rest. settleTimeout is how long that may take.
	quiet, settleTimeout = 40 * time.Second, 20 * time.Minute
	// named is how many of the requests at rest are named.
	named              = 10
	definitionsTimeout = time.Minute
	// profiledFor is how long a profile of CPU time takes.
	profiledFor = 20 * time.Second
)

// world is the garden and the Seed that gardenlet works for.
type world struct {
	options      options
	progress     io.Writer
	began        time.Time
	garden, seed client.Client
	// logs are the audit logs of both.
	logs      []*measure.Audit
	servers   *apiServers
	gardenlet *measure.Program
	results   results
}

// planes are the running control planes. The API servers of all Shoots have the objects of the last one, which nothing changes.
type planes struct {
	garden *garden.Garden
	seed   *controlplane.ControlPlane
	shoots *controlplane.ControlPlane
}

// run measures, and reports to out.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	w := &world{options: opts, progress: progress, began: time.Now(), results: results{Options: opts}}
	directory, err := filepath.Abs(opts.Programs)
	if err != nil {
		return fmt.Errorf("--programs: %w", err)
	}
	scratch, err := os.MkdirTemp("", "trellis-bench-gardenlet-")
	if err != nil {
		return fmt.Errorf("make a directory for the audit logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	w.say("starting a garden and the cluster of a Seed")
	logs := []string{filepath.Join(scratch, "garden.log"), filepath.Join(scratch, "seed.log")}
	plane, err := garden.Start(ctx, garden.Options{
		APIServer: filepath.Join(directory, "apiserver"), ShootRules: true, References: true, ControlPlane: controlplane.Options{AuditLog: logs[0]},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.KillAPIServer(), plane.Stop()) }()
	seed, err := controlplane.Start(ctx, controlplane.Options{AuditLog: logs[1], APIServerArgs: map[string][]string{
		"service-cluster-ip-range": {"10.96.0.0/16"}, // for a Service of each Shoot
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seed.Stop()) }()
	empty, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Stop()) }()
	for _, file := range logs {
		audit, err := measure.OpenAudit(file)
		if err != nil {
			return err
		}
		w.logs = append(w.logs, audit)
	}
	defer func() {
		for _, log := range w.logs {
			err = errors.Join(err, log.Close())
		}
	}()
	ctx, stop := context.WithCancel(ctx) // API servers wait for the watches of what this process simulates
	defer stop()
	if err := w.prepare(ctx, planes{plane, seed, empty}, directory); err != nil {
		return err
	}
	// The Seed waits for the watches of gardenlet, too.
	if err := errors.Join(w.measure(ctx), w.gardenlet.Stop()); err != nil {
		return err
	}
	return w.results.publish(opts.Output, out)
}

// say prints progress.
func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.progress, "%6.1fs  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// prepare creates what gardenlet needs, and starts the programs around it.
func (w *world) prepare(ctx context.Context, of planes, directory string) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	var paths []string
	for _, part := range []string{"", "extensions", "druid", "autoscaling", "machine"} {
		paths = append(paths, filepath.Join(root, "config", "crd", part))
	}
	_, err = envtest.InstallCRDs(of.seed.Config(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: definitionsTimeout})
	if err != nil {
		return fmt.Errorf("define the kinds of a Seed: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, served.AddToScheme, resourcesv1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	unlimited := func(config *rest.Config, agent string) *rest.Config {
		config = measure.WithAgent(config, agent)
		config.QPS = -1
		return config
	}
	if w.garden, err = client.New(unlimited(of.garden.Config(), "garden"), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to the garden: %w", err)
	}
	if w.seed, err = client.New(unlimited(of.seed.Config(), "seed"), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to the Seed: %w", err)
	}
	extension, err := registration()
	if err != nil {
		return err
	}
	for _, object := range append(gardenObjects(), extension...) {
		if err := w.garden.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	if err := w.seed.Create(ctx, gardenObjects()[0]); err != nil {
		return fmt.Errorf("create the namespace of gardenlet: %w", err)
	}
	if err := createGateway(ctx, w.seed); err != nil {
		return err
	}
	var proxy string
	if w.servers, proxy, err = newAPIServers(ctx, w.seed, unlimited(of.shoots.Config(), "api-servers")); err != nil {
		return err
	}
	go func() {
		if err := runResourceManager(ctx, unlimited(of.seed.Config(), "resource-manager"), scheme); err != nil && ctx.Err() == nil {
			w.say("%v", err)
		}
	}()
	if _, err := newControllerManager(of.garden, directory).Start(ctx); err != nil {
		return err
	}
	w.gardenlet = newGardenlet(of.garden, of.seed, directory, proxy, w.options.Profile)
	return nil
}

// measure measures with few Shoots, and then with many.
func (w *world) measure(ctx context.Context) error {
	w.say("starting gardenlet until the Seed is ready")
	if _, err := w.gardenlet.Start(ctx); err != nil {
		return err
	}
	if err := w.awaitSeed(ctx); err != nil {
		return err
	}
	before := 0
	for _, shoots := range []int{w.options.Few, w.options.Shoots} {
		one, err := w.measureWith(ctx, before, shoots)
		if err != nil {
			return fmt.Errorf("with %d Shoots: %w", shoots, err)
		}
		w.results.Turns = append(w.results.Turns, *one)
		before = shoots
		if err := w.gardenlet.ProfileMemory(ctx, fmt.Sprintf("%d-rest", shoots)); err != nil {
			return err
		}
	}
	return nil
}

// measureWith measures with a number of Shoots.
func (w *world) measureWith(ctx context.Context, before, shoots int) (*turn, error) {
	one := &turn{Shoots: shoots, New: shoots - before}
	for _, phase := range []struct {
		says string
		do   func(context.Context, *turn) error
	}{
		{fmt.Sprintf("creating %d Shoots", one.New), w.create},
		{"waiting until gardenlet is at rest", func(ctx context.Context, _ *turn) error { return w.settle(ctx) }},
		{fmt.Sprintf("changing %d Shoots one after the other", w.options.Changes), w.change},
		{"restarting gardenlet", w.restart},
		{fmt.Sprintf("counting requests for %s", w.options.Rest), w.rest},
	} {
		w.say("%s", phase.says)
		if err := phase.do(ctx, one); err != nil {
			return nil, err
		}
	}
	return one, nil
}

// create creates the Shoots of a turn, and waits until all have succeeded.
func (w *world) create(ctx context.Context, one *turn) error {
	if err := w.skip(); err != nil {
		return err
	}
	cpu, err := w.gardenlet.CPU()
	if err != nil {
		return err
	}
	profiled := w.gardenlet.ProfileCPU(ctx, fmt.Sprintf("%d-creation", one.Shoots), profiledFor)
	began := time.Now()
	if err := w.createShoots(ctx, one.Shoots-one.New, one.Shoots); err != nil {
		return err
	}
	if err := w.awaitShoots(ctx, one.Shoots); err != nil {
		return err
	}
	one.Created = time.Since(began)
	after, err := w.gardenlet.CPU()
	one.CreatedCPU = after - cpu
	if err := errors.Join(err, profiled()); err != nil {
		return err
	}
	one.Writes, err = w.sent()
	return err
}

// change changes Shoots one after the other, and measures until gardenlet has written the ManagedResource of the API server.
func (w *world) change(ctx context.Context, one *turn) error {
	limit := int32(300) // another one in each turn
	if one.Shoots > w.options.Few {
		limit++
	}
	for i := range w.options.Changes {
		changed := shoot(i)
		if err := w.garden.Get(ctx, client.ObjectKeyFromObject(changed), changed); err != nil {
			return fmt.Errorf("read Shoot %s: %w", changed.Name, err)
		}
		mr := &resourcesv1alpha1.ManagedResource{}
		key := client.ObjectKey{Namespace: changed.Status.TechnicalID, Name: "kube-apiserver"}
		if err := w.seed.Get(ctx, key, mr); err != nil {
			return fmt.Errorf("read ManagedResource %s: %w", key, err)
		}
		generation := mr.Generation
		patched := client.MergeFrom(changed.DeepCopy())
		changed.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{Requests: &corev1beta1.APIServerRequests{
			MaxNonMutatingInflight: ptr.To(limit),
		}}
		if err := w.garden.Patch(ctx, changed, patched); err != nil {
			return fmt.Errorf("change Shoot %s: %w", changed.Name, err)
		}
		began := time.Now()
		err := wait.PollUntilContextTimeout(ctx, brisk, settleTimeout, true, func(ctx context.Context) (bool, error) {
			err := w.seed.Get(ctx, key, mr)
			return mr.Generation > generation, err
		})
		if err != nil {
			return fmt.Errorf("wait until ManagedResource %s changes: %w", key, err)
		}
		one.Changed = append(one.Changed, time.Since(began))
	}
	slices.Sort(one.Changed)
	return w.settle(ctx)
}

// restart counts the requests of gardenlet after a restart.
func (w *world) restart(ctx context.Context, one *turn) (err error) {
	if err := w.gardenlet.Stop(); err != nil {
		return err
	}
	if err := w.skip(); err != nil {
		return err
	}
	if one.Ready, err = w.gardenlet.Start(ctx); err != nil {
		return err
	}
	profiled := w.gardenlet.ProfileCPU(ctx, fmt.Sprintf("%d-restart", one.Shoots), profiledFor)
	began := time.Now()
	if err := errors.Join(w.settle(ctx), profiled()); err != nil {
		return err
	}
	one.Settled = time.Since(began) - quiet
	if one.SettledCPU, err = w.gardenlet.CPU(); err != nil {
		return err
	}
	if one.AfterRestart, err = w.sent(); err != nil {
		return err
	}
	w.name("after the restart", measure.Request.Writes)
	return nil
}

// rest counts the requests of gardenlet while nothing changes, its CPU time, and its memory.
func (w *world) rest(ctx context.Context, one *turn) (err error) {
	if err := w.skip(); err != nil {
		return err
	}
	asked := w.servers.requests.Load()
	before, err := w.gardenlet.CPU()
	if err != nil {
		return err
	}
	select {
	case <-time.After(w.options.Rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := w.gardenlet.CPU()
	if err != nil {
		return err
	}
	one.RestCPU, one.Probes = after-before, w.servers.requests.Load()-asked
	if one.Memory, err = w.gardenlet.Memory(ctx); err != nil {
		return err
	}
	if one.AtRest, err = w.sent(); err != nil {
		return err
	}
	w.name("at rest", func(measure.Request) bool { return true })
	return nil
}
