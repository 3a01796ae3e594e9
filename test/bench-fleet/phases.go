package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	sites "github.com/trellis-k8s/trellis/examples/flow"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/measure"
)

// createFirst creates a fifth of the sites, and measures the memory of the flow with them.
func (b *bench) createFirst(ctx context.Context) (err error) {
	first := b.options.first()
	if b.results.CreateFirst, err = b.createSome(ctx, "create the first", 0, first); err != nil {
		return err
	}
	if err := b.emitter.stop(); err != nil {
		return err
	}
	if err := b.emitter.start(ctx, "v1"); err != nil {
		return err
	}
	if err := b.await(ctx, "restart", b.lookedAt(ctx, first)); err != nil {
		return err
	}
	b.results.FirstMemory, err = b.memory(ctx, "first")
	return err
}

// create creates the other sites.
func (b *bench) create(ctx context.Context) (err error) {
	b.results.Create, err = b.createSome(ctx, "create the others", b.options.first(), b.options.Owners)
	return err
}

func (b *bench) createSome(ctx context.Context, name string, from, to int) (phase, error) {
	b.say("%s: %d sites of %d bundles", name, to-from, b.options.Bundles)
	return b.measure(ctx, name, func(ctx context.Context) error { return b.fleet.forSome(ctx, from, to, b.fleet.declare) }, b.fleet.ready(to))
}

// memory measures the memory of the flow at rest, shortly after a start.
func (b *bench) memory(ctx context.Context, name string) (memory, error) {
	if err := b.audit.Settle(ctx, byEither, quiet, quietMost); err != nil {
		return memory{}, err
	}
	found, err := b.emitter.memory(ctx, name)
	b.say("memory of the flow with the %s sites: live heap %s, resident %s", name,
		measure.Mebibytes(found.Heap), measure.Mebibytes(found.Resident))
	return found, err
}

// lookedAt counts the reconciliations of the flow, up to one for each site.
func (b *bench) lookedAt(ctx context.Context, owners int) func() (done, all int) {
	return func() (done, all int) {
		passes, err := b.emitter.passes(ctx)
		if err != nil {
			return 0, owners // the process reports the error if it has ended
		}
		return int(passes), owners
	}
}

func (b *bench) changeOne(ctx context.Context) (err error) {
	before := b.fleet.generations(1)
	b.results.ChangeOne, err = b.measure(ctx, "change one input of one site",
		func(ctx context.Context) error { return b.fleet.change(ctx, 0, "one") }, b.fleet.changed(before))
	return err
}

func (b *bench) changeAll(ctx context.Context) (err error) {
	before := b.fleet.generations(b.options.Owners)
	passes, err := b.emitter.passes(ctx)
	if err != nil {
		return err
	}
	b.results.ChangeAll, err = b.measure(ctx, "change one input of each site", func(ctx context.Context) error {
		return b.fleet.forEach(ctx, func(ctx context.Context, i int) error { return b.fleet.change(ctx, i, "all") })
	}, b.fleet.changed(before))
	if err != nil {
		return err
	}
	after, err := b.emitter.passes(ctx)
	b.results.BusyPassSeconds = b.results.ChangeAll.CPUSeconds[emitterProgram] / float64(max(1, after-passes))
	b.say("change one input of each site: %d passes, %.2f ms CPU per pass", after-passes, 1000*b.results.BusyPassSeconds)
	return err
}

// restart restarts the flow with nothing changed, and measures its passes.
func (b *bench) restart(ctx context.Context) error {
	if err := b.emitter.stop(); err != nil {
		return err
	}
	p, err := b.begin("restart")
	if err != nil {
		return err
	}
	if err := b.emitter.start(ctx, "v1"); err != nil {
		return err
	}
	if err := b.await(ctx, "restart", b.lookedAt(ctx, b.options.Owners)); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	p.Seconds = b.since(p)
	cpu, err := b.emitter.cpu()
	if err != nil {
		return err
	}
	passes, err := b.emitter.passes(ctx)
	if err != nil {
		return err
	}
	b.results.PassSeconds = cpu.Seconds() / float64(passes)
	if err := b.end(ctx, &p); err != nil {
		return err
	}
	b.results.Restart = p
	b.say("restart: all sites reconciled after %.1fs, %d passes, %.2f ms CPU per pass; flow: %s",
		p.Seconds, passes, 1000*b.results.PassSeconds, p.Emitter)
	b.results.AllMemory, err = b.memory(ctx, "all")
	return err
}

// rest observes both processes while nothing changes.
func (b *bench) rest(ctx context.Context) error {
	p, err := b.begin("rest")
	if err != nil {
		return err
	}
	b.say("rest: observing for %s", b.options.Rest)
	if err := sleep(ctx, b.options.Rest); err != nil {
		return err
	}
	p.Seconds = b.since(p)
	if err := b.end(ctx, &p); err != nil {
		return err
	}
	b.results.Rest = p
	b.say("rest: flow: %s; resource-manager: %s", p.Emitter, p.Manager)
	return nil
}

// changeCode runs a new version of the flow's program, which has another image.
func (b *bench) changeCode(ctx context.Context) (err error) {
	if err := b.emitter.stop(); err != nil {
		return err
	}
	b.fleet.resetRolling()
	b.results.ChangeCode, err = b.measure(ctx, "change the program",
		func(ctx context.Context) error { return b.emitter.start(ctx, "v2") }, b.fleet.upgraded("v2"))
	b.results.RolledAtOnce = b.fleet.rolledAtOnce()
	b.say("change the program: at most %d ManagedResources were rolling out at the same time", b.results.RolledAtOnce)
	return err
}

func (b *bench) delete(ctx context.Context) (err error) {
	b.results.Delete, err = b.measure(ctx, "delete",
		func(ctx context.Context) error { return b.fleet.forEach(ctx, b.fleet.delete) }, b.fleet.gone)
	if err != nil {
		return err
	}
	b.results.Left, err = b.fleet.left(ctx)
	return err
}

// left counts the objects that remain from the sites, except namespaces and Secrets, which the garbage collector
// would delete.
func (f *fleet) left(ctx context.Context) (int, error) {
	left := 0
	var errs []error
	for _, kind := range []schema.GroupVersionKind{
		resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"), {Version: "v1", Kind: "ConfigMapList"},
		sites.NetworkKind.GroupVersion().WithKind(sites.NetworkKind.Kind + "List"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := f.client.List(ctx, list); err != nil {
			errs = append(errs, fmt.Errorf("list the remaining objects: %w", err))
		}
		for i := range list.Items {
			if name := list.Items[i].Name; name == siteName || len(name) > len(siteName) && name[:len(siteName)+1] == siteName+"-" {
				left++
			}
		}
	}
	return left, errors.Join(errs...)
}
