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

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	// requests is the number of Shoots that are created one after the other.
	requests = 50
	// poll is the period with which the state of the garden is read, except while requests are counted.
	poll = 200 * time.Millisecond
	// quiet is how long the programs must not send requests until they are at rest, longer than the minute that the activity in a Project waits.
	// settleTimeout is how long that may take.
	quiet, settleTimeout = 70 * time.Second, 5 * time.Minute
	// named is how many of the requests of a program at rest are named.
	named = 10
)

// world is the garden whose programs are measured.
type world struct {
	client.Client
	options  options
	progress io.Writer
	began    time.Time
	audit    *measure.Audit
	programs []*program
	results  results
}

// run measures, and reports to out.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	directory, err := filepath.Abs(opts.Programs)
	if err != nil {
		return fmt.Errorf("--programs: %w", err)
	}
	g := &world{options: opts, progress: progress, began: time.Now(), results: results{Options: opts}}
	g.say("starting a garden")
	scratch, err := os.MkdirTemp("", "trellis-bench-garden-")
	if err != nil {
		return fmt.Errorf("make a directory for the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	log := filepath.Join(scratch, "audit.log")
	plane, err := garden.Start(ctx, garden.Options{
		APIServer: filepath.Join(directory, "apiserver"), ShootRules: true, References: true, ControlPlane: controlplane.Options{AuditLog: log},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.KillAPIServer(), plane.Stop()) }()
	if g.audit, err = measure.OpenAudit(log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.audit.Close()) }()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	config := measure.WithAgent(plane.Config(), "garden")
	config.QPS = -1
	if g.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to the garden: %w", err)
	}
	g.programs = programs(plane, directory, opts.QPS)
	if err := g.measure(ctx); err != nil {
		return err
	}
	return g.results.publish(opts.Output, out)
}

// say prints progress.
func (g *world) say(format string, args ...any) {
	fmt.Fprintf(g.progress, "%6.1fs  %s\n", time.Since(g.began).Seconds(), fmt.Sprintf(format, args...))
}

// measure executes the phases of the run.
func (g *world) measure(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceGarden}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceGarden, Name: secretDomain}}, measure.CloudProfile(), measure.Registration(),
	} {
		if err := g.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	for _, one := range g.programs {
		if _, err := one.Start(ctx); err != nil {
			return err
		}
	}
	renewing, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.renewAll(renewing) })
	group.Go(func() error {
		defer stop()
		for _, phase := range []func(context.Context) error{g.fill, g.rest, g.restart} {
			if err := phase(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// fill creates all objects, and waits until the Projects are ready and the Shoots have a Seed.
func (g *world) fill(ctx context.Context) error {
	g.say("creating %d Seeds and %d Projects", g.options.Seeds, g.options.Projects)
	if err := measure.Each(ctx, 0, g.options.Seeds, g.createSeed); err != nil {
		return err
	}
	began := time.Now()
	if err := measure.Each(ctx, 0, g.options.Projects, g.createProject); err != nil {
		return err
	}
	if err := g.await(ctx, "Projects are ready", &corev1beta1.ProjectList{}, func(object runtime.Object) bool {
		project, is := object.(*corev1beta1.Project)
		return is && project.Status.Phase == corev1beta1.ProjectReady
	}); err != nil {
		return err
	}
	g.results.Projects = time.Since(began)
	scheduler := g.programs[slices.IndexFunc(g.programs, func(one *program) bool { return one.Name == "scheduler" })]
	if err := scheduler.Stop(); err != nil {
		return err
	}
	g.say("creating %d Shoots", g.options.Shoots)
	began = time.Now()
	if err := measure.Each(ctx, 0, g.options.Shoots, g.createShoot); err != nil {
		return err
	}
	g.results.Created = time.Since(began)
	g.say("scheduling them")
	began = time.Now()
	if _, err := scheduler.Start(ctx); err != nil {
		return err
	}
	if err := g.awaitScheduled(ctx); err != nil {
		return err
	}
	g.results.Scheduled = time.Since(began)
	if err := g.succeed(ctx); err != nil {
		return err
	}
	return g.alone(ctx)
}

// alone measures requests for Shoots that one user sends one after the other.
func (g *world) alone(ctx context.Context) error {
	g.say("creating and changing %d Shoots one after the other", requests)
	var created, changed []time.Duration
	for i := range requests {
		shoot := g.shoot(g.options.Shoots + i)
		shoot.Spec.SeedName = ptr.To(seedName(0))
		began := time.Now()
		if err := g.Create(ctx, shoot); err != nil {
			return fmt.Errorf("create Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
		}
		created = append(created, time.Since(began))
		before := client.MergeFrom(shoot.DeepCopy())
		shoot.Spec.Purpose = ptr.To(corev1beta1.ShootPurposeDevelopment)
		began = time.Now()
		if err := g.Patch(ctx, shoot, before); err != nil {
			return fmt.Errorf("change Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
		}
		changed = append(changed, time.Since(began))
	}
	slices.Sort(created)
	slices.Sort(changed)
	g.results.Create, g.results.Change = created[len(created)/2], changed[len(changed)/2]
	return nil
}

// rest counts the requests while nothing happens but the heartbeats of the gardenlets.
func (g *world) rest(ctx context.Context) error {
	g.say("waiting until the programs are at rest")
	if err := g.settle(ctx); err != nil {
		return err
	}
	g.say("counting requests for %s", g.options.Rest)
	if err := g.audit.Skip(); err != nil {
		return err
	}
	select {
	case <-time.After(g.options.Rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := g.count(ctx, func(f *figures, sent measure.Tally, memory int64) { f.AtRest, f.Memory = sent, memory }); err != nil {
		return err
	}
	for _, one := range g.programs {
		for _, request := range g.audit.Some(one.sent, named) {
			g.say("%s was not at rest: %s %s %s", one.Name, request.Verb, request.Resource, request.Object)
		}
	}
	return nil
}

// restart counts the writes of the programs after their restart.
func (g *world) restart(ctx context.Context) error {
	g.say("restarting the programs")
	if err := g.audit.Skip(); err != nil {
		return err
	}
	for _, one := range g.programs {
		if err := one.Stop(); err != nil {
			return err
		}
		if _, err := one.Start(ctx); err != nil {
			return err
		}
	}
	if err := g.settle(ctx); err != nil {
		return err
	}
	return g.count(ctx, func(f *figures, sent measure.Tally, memory int64) {
		f.AfterRestart, f.MemoryAfterRestart = sent, memory
	})
}

// settle waits until no program sends requests.
func (g *world) settle(ctx context.Context) error {
	return g.audit.Settle(ctx, func(request measure.Request) bool {
		for _, one := range g.programs {
			if one.sent(request) {
				return true
			}
		}
		return false
	}, quiet, settleTimeout)
}

// count records the requests of each program since the last [measure.Audit.Skip], and its memory.
func (g *world) count(ctx context.Context, record func(f *figures, sent measure.Tally, memory int64)) error {
	if _, err := g.audit.Read(); err != nil {
		return err
	}
	for i, one := range g.programs {
		memory, err := one.Memory(ctx)
		if err != nil {
			return err
		}
		if i == len(g.results.Programs) {
			g.results.Programs = append(g.results.Programs, figures{Name: one.Name})
		}
		record(&g.results.Programs[i], g.audit.Of(one.sent), memory.Resident)
	}
	return nil
}

// awaitScheduled waits until no Shoot is without a Seed. A list of all Shoots would take the server more time than to schedule some.
func (g *world) awaitScheduled(ctx context.Context) error {
	pending := &corev1beta1.ShootList{}
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := g.List(ctx, pending, client.MatchingFields{"spec.seedName": ""}, client.Limit(1))
		return len(pending.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until all Shoots have a Seed: %w", err)
	}
	return nil
}

// await waits until all objects of a kind are as wanted.
func (g *world) await(ctx context.Context, what string, list client.ObjectList, wanted func(runtime.Object) bool) error {
	done, all := 0, 0
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		if err := g.List(ctx, list); err != nil {
			return false, err
		}
		done, all = 0, 0
		err := meta.EachListItem(list, func(object runtime.Object) error {
			all++
			if wanted(object) {
				done++
			}
			return nil
		})
		return done == all, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d %s: %w", done, all, what, err)
	}
	return nil
}
