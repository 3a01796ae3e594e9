// Package agent is the node agent: it gets its identity, watches its Node and its Secrets, and runs the controllers.
package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/certificate"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/loop"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Options are what a node agent needs of its machine and of the command line.
type Options struct {
	// Load returns the configuration.
	Load     func() (*v1alpha1.NodeAgentConfiguration, error)
	Files    host.Files
	Systemd  host.Systemd
	Images   host.Images
	Commands host.Commands
	// Hostname returns the name of the machine.
	Hostname func() (string, error)
	// Check returns an error if a program cannot replace the node agent.
	Check func(ctx context.Context, program string) error
	// KubeletHealth is the URL of the health of kubelet.
	KubeletHealth string
	Clock         clock.WithTicker
	Log           logr.Logger
	Metrics       *Metrics
	// Wrap, which may be nil, wraps the transport to the API server.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Run runs the node agent until the context ends, and returns nil then. It returns apply.ErrRestart if the process must end, so that systemd starts
// the program again.
func Run(ctx context.Context, options Options) error {
	for {
		err := session(ctx, options)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end was asked for
		}
		switch {
		case errors.Is(err, certificate.ErrRenewed) || errors.Is(err, errChanged):
			options.Log.Info("Connects again", "reason", err.Error())
		default:
			return err
		}
	}
}

// session runs the node agent with one identity and one connection.
func session(ctx context.Context, options Options) error {
	config, err := options.Load()
	if err != nil {
		return err
	}
	hostname, err := options.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of the machine: %w", err)
	}
	s := &run{
		Options: options, config: config, files: identity.Files{Files: options.Files, Config: config}, host: strings.ToLower(hostname),
		node: &cluster.Watched[corev1.Node]{}, secret: &cluster.Watched[corev1.Secret]{},
	}
	if err := s.files.MakeDirectory(paths.Temporary); err != nil {
		return err
	}
	connection, err := s.identify(ctx)
	if err != nil {
		return err
	}
	if err := s.files.StoreForKubelet(); err != nil {
		return err
	}
	if s.client, err = cluster.New(connection); err != nil {
		return err
	}
	defer s.client.Close()
	s.events = cluster.NewEvents(s.client, s.node, options.Clock, options.Log)
	s.applier = s.newApplier()
	s.authorities = string(connection.CAData)
	options.Metrics.identified(connection)
	return s.start(ctx, connection)
}

// run is what one session has.
type run struct {
	Options
	config *v1alpha1.NodeAgentConfiguration
	files  identity.Files
	host   string
	client *cluster.Client
	node   *cluster.Watched[corev1.Node]
	secret *cluster.Watched[corev1.Secret]
	events *cluster.Events
	// authorities are the certificates that the API server's certificate is checked with.
	authorities string
	applier     *apply.Applier
	// changes is held by what changes units, so that a certificate is not renewed, and a unit not restarted, in between.
	changes sync.Mutex
}

// newLoop returns a loop.
func (s *run) newLoop(name string, pass func(ctx context.Context) (time.Duration, error)) *loop.Loop {
	return loop.New(name, pass, s.Clock, s.Log, s.Metrics)
}

// alone returns a pass that does not run together with others of the kind.
func (s *run) alone(pass func(ctx context.Context) (time.Duration, error)) func(ctx context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		s.changes.Lock()
		defer s.changes.Unlock()
		return pass(ctx)
	}
}

// errIdentified ends the loop that waits for an identity.
var errIdentified = errors.New("the node agent has its identity")

// identify returns the connection with the identity of the node agent. It requests a certificate if there is none, until it gets one.
func (s *run) identify(ctx context.Context) (own *rest.Config, err error) {
	pass := func(ctx context.Context) (time.Duration, error) {
		if own, err = s.files.Own(s.Clock.Now()); err == nil {
			return 0, loop.End(errIdentified)
		}
		if !errors.Is(err, identity.ErrNone) {
			return 0, err
		}
		if err := s.request(ctx); err != nil {
			return 0, err
		}
		own, err = s.files.Own(s.Clock.Now())
		if err != nil {
			return 0, err
		}
		return 0, loop.End(errIdentified)
	}
	if err := s.newLoop("identity", pass).Start(ctx); !errors.Is(err, errIdentified) {
		return nil, errors.Join(err, ctx.Err())
	}
	own.Wrap(s.wrap)
	return own, nil
}

func (s *run) wrap(next http.RoundTripper) http.RoundTripper {
	if s.Wrap == nil {
		return next
	}
	return s.Wrap(next)
}

// request requests the first certificate with the bootstrap token.
func (s *run) request(ctx context.Context) error {
	connection, err := s.files.Bootstrap()
	if err != nil {
		return err
	}
	connection.Wrap(s.wrap)
	client, err := cluster.New(connection)
	if err != nil {
		return err
	}
	defer client.Close()
	machine, err := s.files.Machine()
	if err != nil {
		return err
	}
	s.Log.Info("Requests a certificate", "machine", machine)
	issued, key, err := identity.Request(ctx, client, machine, s.Clock)
	if err != nil {
		return err
	}
	s.Log.Info("Got a certificate", "machine", machine)
	return s.files.Store(issued, key)
}

// renewal returns the controller of the certificate, or nil if the configuration names a kubeconfig.
func (s *run) renewal(connection *rest.Config) (*certificate.Controller, error) {
	if s.config.ClientConnection.Kubeconfig != "" {
		return nil, nil
	}
	own, err := identity.Certificate(connection)
	if err != nil {
		return nil, err
	}
	return &certificate.Controller{
		Requests: s.client, Files: s.files, Clock: s.Clock, Log: s.Log, Changes: &s.changes,
		Due: identity.RenewAt(own, rand.Float64()), //nolint:gosec // spreads requests
	}, nil
}

// start runs everything until one part ends.
func (s *run) start(ctx context.Context, connection *rest.Config) error {
	loops, err := s.loops(connection)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	background := func(work func(context.Context)) {
		group.Go(func() error {
			work(ctx)
			return nil
		})
	}
	background(s.events.Run)
	background(func(ctx context.Context) { s.client.WatchNode(ctx, s.host, s.node) })
	background(func(ctx context.Context) {
		s.client.WatchSecret(ctx, s.config.Controllers.OperatingSystemConfig.SecretName, s.secret)
	})
	s.startTokens(background)
	for _, each := range loops {
		group.Go(func() error { return each.Start(ctx) })
	}
	return group.Wait()
}
