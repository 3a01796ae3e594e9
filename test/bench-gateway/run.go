package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/measure"
)

// definitionsTimeout is how long the API server may take to serve the kinds of the Gateway API.
const definitionsTimeout = time.Minute

// pause is the time between two connections to a host that does not answer yet.
const pause = time.Millisecond

// bench is one run.
type bench struct {
	options  options
	progress io.Writer
	began    time.Time
	seed     *seed
	gateway  *gateway
	results  results
}

// run measures, and reports to out.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	b := &bench{options: opts, progress: progress, began: time.Now(), results: results{Options: opts}}
	target, err := listen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.close()) }()
	b.say("starting a seed")
	cp, err := controlplane.Start(ctx, controlplane.Options{APIServerArgs: map[string][]string{
		"service-cluster-ip-range": {"10.96.0.0/16"}, // for a Service of each Shoot
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	if b.seed, err = newSeed(ctx, cp.Config(), target.address); err != nil {
		return err
	}
	binary, err := filepath.Abs(opts.Binary)
	if err != nil {
		return fmt.Errorf("--binary: %w", err)
	}
	b.gateway = newGateway(cp, binary)
	if err := b.measure(ctx); err != nil {
		return err
	}
	return b.results.publish(opts.Output, out)
}

// say prints progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// measure measures with few Shoots, and then with many. The gateway starts again for each, so that its memory has nothing of its past.
func (b *bench) measure(ctx context.Context) error {
	for _, shoots := range []int{b.options.Few, b.options.Shoots} {
		b.say("creating the objects of %d Shoots", shoots)
		if err := b.seed.grow(ctx, shoots); err != nil {
			return err
		}
		one, err := b.measureWith(ctx, shoots)
		if err != nil {
			return fmt.Errorf("with %d Shoots: %w", shoots, err)
		}
		b.results.Turns = append(b.results.Turns, *one)
	}
	return nil
}

// measureWith measures one process of the gateway.
func (b *bench) measureWith(ctx context.Context, shoots int) (_ *turn, err error) {
	one := &turn{Shoots: shoots}
	b.say("starting the gateway until its status is settled")
	if one.Start, err = b.gateway.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.gateway.Stop()) }()
	if err := b.seed.awaitStatus(ctx, shoots); err != nil {
		return nil, err
	}
	// A second process has no garbage of the first status of each route.
	if err := b.gateway.Stop(); err != nil {
		return nil, err
	}
	if one.Start, err = b.gateway.Start(ctx); err != nil {
		return nil, err
	}
	if one.Memory, err = b.gateway.Memory(ctx); err != nil {
		return nil, err
	}
	b.say("%d connections", b.options.Hosts)
	for i := range b.options.Hosts {
		took, err := answers(ctx, b.gateway.address, host(i%shoots))
		if err != nil {
			return nil, err
		}
		one.Connections = append(one.Connections, took)
	}
	b.say("%d new hosts", b.options.Hosts)
	if one.NewHosts, err = b.measureHosts(ctx); err != nil {
		return nil, err
	}
	b.say("%d open connections", b.options.Connections)
	one.WithConnections, err = b.measureConnections(ctx, shoots)
	return one, err
}

// measureHosts returns the times from the creation of routes until their hosts answer. The routes are deleted afterwards.
func (b *bench) measureHosts(ctx context.Context) (times []time.Duration, err error) {
	for i := range b.options.Hosts {
		name := fmt.Sprintf("new-%d", i)
		route, err := b.seed.newRoute(name)
		if err != nil {
			return nil, err
		}
		if err := b.seed.client.Create(ctx, route); err != nil {
			return nil, fmt.Errorf("create a route: %w", err)
		}
		began := time.Now()
		for {
			if _, err = answers(ctx, b.gateway.address, hostOf(name)); err == nil {
				break
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil, fmt.Errorf("a new host does not answer: %w", err)
			}
		}
		times = append(times, time.Since(began))
		if err := b.seed.client.Delete(ctx, route); err != nil {
			return nil, fmt.Errorf("delete a route: %w", err)
		}
	}
	return times, nil
}

// measureConnections returns the memory of the gateway while connections are open and silent.
func (b *bench) measureConnections(ctx context.Context, shoots int) (measure.ProgramMemory, error) {
	var open []io.Closer
	defer func() {
		for _, one := range open {
			_ = one.Close()
		}
	}()
	for i := range b.options.Connections {
		one, err := connect(ctx, b.gateway.address, host(i%shoots))
		if err != nil {
			return measure.ProgramMemory{}, err
		}
		open = append(open, one)
	}
	return b.gateway.Memory(ctx)
}

// newSeed returns a seed with the kinds of the Gateway API and a gateway.
func newSeed(ctx context.Context, config *rest.Config, target string) (*seed, error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd", "gatewayapi")}, MaxTime: definitionsTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("define the kinds of the Gateway API: %w", err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	s := &seed{client: c, target: target}
	if err := s.createGateway(ctx); err != nil {
		return nil, err
	}
	return s, nil
}
