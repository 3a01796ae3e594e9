package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	// A phase begins when the other controllers have not written anything for this time.
	controllersQuiet = 2 * time.Second
	controllersMost  = 2 * time.Minute
	// A phase's requests are counted until the resource-manager has not sent any for this time. Periodic requests
	// with longer intervals are not waited for.
	managerQuiet = 3 * time.Second
	managerMost  = 15 * time.Second
	// After a start the resource-manager may be busy for longer, with pauses.
	startQuiet = 5 * time.Second
	startMost  = 5 * time.Minute
	// warmUp is the number of ManagedResources that warm up the API server.
	warmUp = 16
)

// bench is one run.
type bench struct {
	options  options
	cp       *controlplane.ControlPlane
	user     *user
	bare     *bareClient
	audit    *measure.Audit
	manager  *measure.Manager
	managed  workload
	revision int
	results  results
	began    time.Time
	progress io.Writer
}

// run measures, and reports to out and to the requested files.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	base, err := readBase(opts.Base)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "trellis-bench-")
	if err != nil {
		return fmt.Errorf("create a directory for the run: %w", err)
	}
	defer func() {
		if opts.Keep {
			fmt.Fprintln(progress, "Logs and audit log are in", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	b := &bench{options: opts, progress: progress, began: time.Now()}
	b.say("starting a control plane")
	auditLog := filepath.Join(dir, "audit.log")
	nodes := 0
	if len(opts.Sets) > 0 {
		nodes = 2 // published manifests have Pods that have to run and to terminate
	}
	b.cp, err = controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Scheduler: nodes > 0, Nodes: nodes, Dir: filepath.Join(dir, "controlplane"), AuditLog: auditLog,
		// Envtest's default range has addresses for only 254 Services.
		APIServerArgs: map[string][]string{"service-cluster-ip-range": {"10.0.0.0/14"}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.cp.Stop()) }()
	if b.audit, err = measure.OpenAudit(auditLog); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.audit.Close()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if len(opts.Sets) > 0 {
		runs, err := b.measureSets(ctx)
		return errors.Join(err, publishSets(runs, opts, out))
	}
	if err := b.measureAll(ctx); err != nil {
		return err
	}
	return b.results.publish(opts, base, out)
}

// say prints progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// prepare creates what all phases need, and warms up the API server: its first requests are slow.
func (b *bench) prepare(ctx context.Context) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(b.cp.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd")}, ErrorIfPathMissing: true,
	})
	if err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions: %w", err)
	}
	if b.user, err = newUser(b.cp.Config()); err != nil {
		return err
	}
	if b.bare, err = newBareClient(b.cp.Config()); err != nil {
		return err
	}
	if b.results, err = newResults(ctx, b.options, b.cp); err != nil {
		return err
	}
	b.manager = b.newManager("resource-manager", b.options.Binary)
	b.say("warming up the API server")
	warm := b.workload("warm-up", limitClass)
	warm.resources = min(warmUp, warm.resources)
	_, err = b.limits(ctx, warm)
	return err
}

// newManager returns the resource-manager to measure. Its files have the name as a prefix.
func (b *bench) newManager(name, binary string) *measure.Manager {
	return &measure.Manager{
		ControlPlane: b.cp, Name: name, Binary: binary, Workers: b.options.Workers, SyncPeriod: b.options.SyncPeriod, Profiler: measure.Profiler{Profile: b.options.Profile},
	}
}

func (b *bench) workload(set, class string) workload {
	return workload{
		set: set, class: class, resources: b.options.ManagedResources, objects: b.options.Objects, namespaces: b.options.Namespaces,
	}
}

// step is an optional part of a run.
type step struct {
	wanted bool
	run    func(context.Context) error
}

// measureAll runs the phases. The limit is measured before and after each phase that is compared with it, because
// the speed of a machine changes within minutes. The remaining phases are measured with a process that has both
// started with all objects present and updated all of them.
func (b *bench) measureAll(ctx context.Context) error {
	o := b.options
	more := o.wants(phaseRestart, phaseRest, phaseDrift, phaseDelete)
	stop := func(context.Context) error { return b.manager.Stop() }
	err := runSteps(ctx, []step{
		{o.wants(phaseLimit), b.limit},
		{true, func(ctx context.Context) error { return b.takeTurns(ctx, more, stop) }},
		{more, b.restart},
		{more && o.wants(phaseUpdate), b.update},
		{o.wants(phaseRest), b.rest},
		{o.wants(phaseDrift), b.drift},
		{o.wants(phaseDelete), b.delete},
		{true, stop},
	})
	b.results.PeakBytes = b.manager.Peak
	return err
}

// takeTurns measures creating and updating, alternating with the limit. It takes further turns, up to mostTurns,
// while they disagree on whether a share of the limit meets its target: the speed of a shared machine changes from
// one turn to the next.
func (b *bench) takeTurns(ctx context.Context, stopped bool, stop func(context.Context) error) error {
	o := b.options
	turn := []step{
		{true, b.newTurn},
		{true, b.manager.Start},
		{true, b.create},
		{o.wants(phaseUpdate), b.update},
		{o.wants(phaseLimit) || stopped, stop},
		{o.wants(phaseLimit), b.limit},
	}
	for taken := 0; taken < o.turns() || o.wants(phaseLimit) && taken < mostTurns && b.results.disagree(); taken++ {
		if err := runSteps(ctx, turn); err != nil {
			return err
		}
	}
	return nil
}

func runSteps(ctx context.Context, steps []step) error {
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the time from the start of the user's writes until all ManagedResources of a workload have
// reached a goal.
func (b *bench) measure(ctx context.Context, name string, w workload, reached goal, begin func(context.Context) error,
) (phase, error) {
	if err := b.settle(ctx); err != nil {
		return phase{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.Timeout, fmt.Errorf("%s took longer than %s", name, b.options.Timeout))
	defer cancel()
	follower, err := b.user.follow(ctx, w)
	if err != nil {
		return phase{}, err
	}
	measured, err := b.begin(name)
	if err != nil {
		return phase{}, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return begin(groupCtx) })
	group.Go(func() error {
		return follower.await(groupCtx, reached, func(done int) error {
			b.say("%s: %d of %d ManagedResources", name, done, w.resources)
			return b.manager.Err()
		})
	})
	if err := group.Wait(); err != nil {
		return phase{}, fmt.Errorf("%s: %w", name, err)
	}
	err = b.end(&measured, w.resources*w.objects)
	b.say("%s: %d objects in %.1fs, %.0f objects/s", name, measured.Objects, measured.Seconds, measured.rate())
	return measured, err
}

// settle waits until the other controllers have processed earlier changes, and discards the requests so far.
func (b *bench) settle(ctx context.Context) error {
	if err := b.audit.Settle(ctx, measure.Request.ByController, controllersQuiet, controllersMost); err != nil {
		return err
	}
	return b.audit.Skip()
}

// begin returns a phase that starts now.
func (b *bench) begin(name string) (phase, error) {
	cpu, err := b.manager.CPU()
	if err != nil {
		return phase{}, err
	}
	usage, err := measure.ReadUsage()
	return phase{Name: name, startUsage: usage, startCPU: cpu, started: time.Now()}, err
}

// end completes a phase that ends now.
func (b *bench) end(p *phase, objects int) error {
	p.Seconds, p.Objects = time.Since(p.started).Seconds(), objects
	usage, err := measure.ReadUsage()
	if err != nil {
		return err
	}
	used := usage.Since(p.startUsage)
	p.CPUSeconds = map[string]float64{}
	for program, cpu := range used.Own {
		p.CPUSeconds[program] = cpu.Seconds()
	}
	p.ForeignCPUs = max(0, (used.All-used.Own.Total()).Seconds()/p.Seconds)
	cpu, err := b.manager.CPU()
	p.ManagerCPUSeconds = (cpu - p.startCPU).Seconds()
	return err
}
