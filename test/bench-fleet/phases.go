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

// empty measures the memory of the flow's process without a site.
func (b *bench) empty(ctx context.Context) (err error) {
	if err := b.audit.Settle(ctx, byEither, quiet, quietMost); err != nil {
		return err
	}
	b.results.EmptyBytes, err = b.emitter.resident()
	return err
}

func (b *bench) create(ctx context.Context) (err error) {
	b.say("create: %d sites of %d bundles", b.options.Owners, b.options.Bundles)
	b.results.Create, err = b.measure(ctx, "create", func(ctx context.Context) error { return b.fleet.forEach(ctx, b.fleet.declare) }, b.fleet.ready)
	return err
}

func (b *bench) changeOne(ctx context.Context) (err error) {
	before := b.fleet.generations(1)
	b.results.ChangeOne, err = b.measure(ctx, "change one input of one site",
		func(ctx context.Context) error { return b.fleet.change(ctx, 0, "one") }, b.fleet.changed(before))
	return err
}

func (b *bench) changeAll(ctx context.Context) (err error) {
	before := b.fleet.generations(b.options.Owners)
	b.results.ChangeAll, err = b.measure(ctx, "change one input of each site", func(ctx context.Context) error {
		return b.fleet.forEach(ctx, func(ctx context.Context, i int) error { return b.fleet.change(ctx, i, "all") })
	}, b.fleet.changed(before))
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
	err = b.await(ctx, "restart", func() (done, all int) {
		passes, err := b.emitter.passes(ctx)
		if err != nil {
			return 0, b.options.Owners // the error is that of the process, if it has ended
		}
		return int(passes), b.options.Owners
	})
	if err != nil {
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
	b.say("restart: all looked at after %.1fs, %d passes, %.2f ms CPU for a pass; flow: %s", p.Seconds, passes, 1000*b.results.PassSeconds, p.Emitter)
	return nil
}

// rest watches both processes while nothing happens.
func (b *bench) rest(ctx context.Context) error {
	p, err := b.begin("rest")
	if err != nil {
		return err
	}
	b.say("rest: watching for %s", b.options.Rest)
	if err := sleep(ctx, b.options.Rest); err != nil {
		return err
	}
	p.Seconds = b.since(p)
	if b.results.FullBytes, err = b.emitter.resident(); err != nil {
		return err
	}
	if err := b.end(ctx, &p); err != nil {
		return err
	}
	b.results.Rest = p
	b.say("rest: flow: %s; resource-manager: %s; flow: %s resident", p.Emitter, p.Manager, measure.Mebibytes(b.results.FullBytes))
	return nil
}

// changeCode runs a new version of the flow's program, which brings another image.
func (b *bench) changeCode(ctx context.Context) (err error) {
	if err := b.emitter.stop(); err != nil {
		return err
	}
	b.fleet.resetRolling()
	b.results.ChangeCode, err = b.measure(ctx, "change the program", func(ctx context.Context) error { return b.emitter.start(ctx, "v2") }, b.fleet.upgraded("v2"))
	b.results.RolledAtOnce = b.fleet.rolledAtOnce()
	b.say("change the program: at most %d ManagedResources were rolling out at a time", b.results.RolledAtOnce)
	return err
}

func (b *bench) delete(ctx context.Context) (err error) {
	b.results.Delete, err = b.measure(ctx, "delete", func(ctx context.Context) error { return b.fleet.forEach(ctx, b.fleet.delete) }, b.fleet.gone)
	if err != nil {
		return err
	}
	b.results.Left, err = b.fleet.left(ctx)
	return err
}

// left counts what the sites have left behind, but for namespaces and for Secrets, which the garbage collector would delete.
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
			errs = append(errs, fmt.Errorf("list what is left: %w", err))
		}
		for i := range list.Items {
			if name := list.Items[i].Name; name == siteName || len(name) > len(siteName) && name[:len(siteName)+1] == siteName+"-" {
				left++
			}
		}
	}
	return left, errors.Join(errs...)
}
