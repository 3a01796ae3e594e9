package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	// Requests are counted until neither process has sent one for this time.
	quiet     = 3 * time.Second
	quietMost = 5 * time.Minute
)

// bench is one run.
type bench struct {
	options  options
	progress io.Writer
	began    time.Time
	cp       *controlplane.ControlPlane
	audit    *measure.Audit
	manager  *measure.Manager
	emitter  *emitter
	fleet    *fleet
	results  results
}

// run measures, and reports to out and to the requested file.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	b := &bench{options: opts, progress: progress, began: time.Now(), results: results{Options: opts}}
	dir, err := os.MkdirTemp("", "trellis-bench-fleet-")
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
	b.say("starting a control plane")
	auditLog := filepath.Join(dir, "audit.log")
	b.cp, err = controlplane.Start(ctx, controlplane.Options{Dir: filepath.Join(dir, "controlplane"), AuditLog: auditLog})
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
	defer b.fleet.stop()
	if err := b.measureAll(ctx); err != nil {
		return err
	}
	return b.results.publish(opts, out)
}

// say prints progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// prepare creates the objects that all phases need.
func (b *bench) prepare(ctx context.Context) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(b.cp.Config(), envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{
		filepath.Join(root, "config", "crd"),
		filepath.Join(root, "config", "crd", "extensions", "extensions.gardener.cloud_infrastructures.yaml"),
	}})
	if err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions: %w", err)
	}
	b.manager = &measure.Manager{
		ControlPlane: b.cp, Name: "resource-manager", Binary: b.options.Binary, Workers: b.options.Workers, SyncPeriod: time.Minute,
	}
	b.emitter = &emitter{cp: b.cp, options: b.options}
	if b.fleet, err = newFleet(ctx, b.cp.Config(), b.options); err != nil {
		return err
	}
	b.say("creating %d namespaces", b.options.Owners)
	if err := b.fleet.createNamespaces(ctx); err != nil {
		return err
	}
	if err := b.manager.Start(ctx); err != nil {
		return err
	}
	return b.emitter.start(ctx, "v1")
}

// measureAll runs the phases.
func (b *bench) measureAll(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		b.createFirst, b.create, b.changeOne, b.changeAll, b.restart, b.rest, b.changeCode, b.delete,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := errors.Join(b.manager.Err(), b.emitter.err()); err != nil {
			return err
		}
	}
	return errors.Join(b.emitter.stop(), b.manager.Stop())
}

// emitterProgram is the name of the flow's program.
const emitterProgram = "sites"

// byEmitter reports whether the flow sent a request.
func byEmitter(r measure.Request) bool { return r.Client == emitterProgram }

// byEither reports whether a request was sent by the flow or by the resource-manager, and counts.
func byEither(r measure.Request) bool { return (byEmitter(r) || r.ByManager()) && r.Counts() }

// measure returns the time until a goal is reached, and counts the requests, including those shortly afterwards.
func (b *bench) measure(ctx context.Context, name string, begin func(context.Context) error,
	reached func() (done, all int),
) (phase, error) {
	p, err := b.begin(name)
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.Timeout, fmt.Errorf("%s took longer than %s", name, b.options.Timeout))
	defer cancel()
	if err := begin(ctx); err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	if err := b.await(ctx, name, reached); err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	p.Seconds = time.Since(p.started).Seconds()
	err = b.end(ctx, &p)
	b.say("%s: %.1fs; flow: %s; resource-manager: %d requests", name, p.Seconds, p.Emitter, p.Manager.Total())
	return p, err
}

// begin returns a phase that starts now. Both processes are at rest then.
func (b *bench) begin(name string) (phase, error) {
	p := phase{Name: name}
	if err := b.audit.Skip(); err != nil {
		return p, err
	}
	var err error
	if p.usage, err = measure.ReadUsage(); err != nil {
		return p, err
	}
	p.started = time.Now()
	return p, nil
}

// end waits until both processes are at rest, and completes a phase.
func (b *bench) end(ctx context.Context, p *phase) error {
	if err := b.audit.Settle(ctx, byEither, quiet, quietMost); err != nil {
		return err
	}
	p.Emitter, p.Manager = b.audit.Of(byEmitter), b.audit.Of(measure.Request.ByManager)
	usage, err := measure.ReadUsage()
	if err != nil {
		return err
	}
	p.CPUSeconds = map[string]float64{}
	for program, cpu := range usage.Since(p.usage).Own {
		p.CPUSeconds[program] = cpu.Seconds()
	}
	return nil
}

// await waits until a goal is reached, and periodically prints progress.
func (b *bench) await(ctx context.Context, name string, reached func() (done, all int)) error {
	const look, tell = 100 * time.Millisecond, 10 * time.Second
	told := time.Now()
	for {
		done, all := reached()
		if done >= all {
			return nil
		}
		if time.Since(told) > tell {
			told = time.Now()
			b.say("%s: %d of %d", name, done, all)
			if _, err := b.audit.Read(); err != nil {
				return err
			}
		}
		if err := errors.Join(b.manager.Err(), b.emitter.err(), b.fleet.err()); err != nil {
			return err
		}
		if err := sleep(ctx, look); err != nil {
			return fmt.Errorf("%d of %d: %w", done, all, err)
		}
	}
}

func sleep(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
