package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/configuration"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/drift"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/health"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/lease"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/restart"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/token"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/unitcheck"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/loop"
)

const (
	// probeTimeout limits how long the host of a registry may take to answer, and hostnamePeriod is the time between two reads of the name of the
	// machine.
	probeTimeout   = time.Second
	hostnamePeriod = 30 * time.Second
)

// errChanged ends a session because what it was started with has changed.
var errChanged = errors.New("the machine has changed")

func (s *run) newApplier() *apply.Applier {
	return &apply.Applier{
		Files: s.Files, Systemd: s.Systemd, Images: s.Images, Commands: s.Commands, Check: s.Check, Log: s.Log,
		Probe: apply.Probe(&http.Client{Timeout: probeTimeout}),
		Secret: func(ctx context.Context, name string) (map[string][]byte, error) {
			secret, err := s.client.Secret(ctx, name)
			if err != nil {
				return nil, err
			}
			return secret.Data, nil
		},
	}
}

func (s *run) newUpdater() *inplace.Updater {
	return &inplace.Updater{
		Client: s.client, Files: s.files, Systemd: s.Systemd, Commands: s.Commands, Clock: s.Clock, Log: s.Log, Applied: s.applier.Applied,
		Kubelet: func(ctx context.Context) error { return health.AskKubelet(ctx, s.KubeletHealth) },
	}
}

// loops returns all controllers.
func (s *run) loops(connection *rest.Config) ([]*loop.Loop, error) {
	applies := &configuration.Controller{
		Client: s.client, Secret: s.secret, Node: s.node, Events: s.events, Applier: s.applier, InPlace: s.newUpdater(), Files: s.files, Host: s.host,
		Clock: s.Clock, Log: s.Log, Applied: s.Metrics.applied,
	}
	configures := s.newLoop("operatingsystemconfig", s.alone(func(ctx context.Context) (time.Duration, error) {
		again, err := applies.Run(ctx)
		if err != nil {
			return again, err
		}
		return again, s.authoritiesChanged()
	}))
	s.secret.OnChange(configures.Wake)
	loops := []*loop.Loop{configures}
	for name, pass := range s.passes() {
		loops = append(loops, s.newLoop(name, pass))
	}
	for _, each := range loops {
		if followsNode[each.Name] {
			s.node.OnChange(each.Wake)
		}
	}
	s.wakeOnce(loops)
	renews, err := s.renewal(connection)
	if err != nil {
		return nil, err
	}
	if renews != nil {
		loops = append(loops, s.newLoop("certificate", renews.Run))
	}
	return loops, nil
}

// followsNode are the controllers that run after each change of the Node.
var followsNode = map[string]bool{"operatingsystemconfig": true, "node": true, "drift": true}

// passes returns the passes of the controllers of the Node by their names.
func (s *run) passes() map[string]func(context.Context) (time.Duration, error) {
	restarts := &restart.Controller{Client: s.client, Node: s.node, Events: s.events, Systemd: s.Systemd, Log: s.Log}
	leases := &lease.Controller{Client: s.client, Node: s.node, Clock: s.Clock}
	checks := &health.Controller{
		Client: s.client, Node: s.node, Events: s.events, Systemd: s.Systemd, Commands: s.Commands, Kubelet: s.KubeletHealth, Clock: s.Clock, Log: s.Log,
	}
	units := &unitcheck.Controller{
		Client: s.client, Node: s.node, Systemd: s.Systemd, Applier: s.applier, Files: s.Files, Clock: s.Clock,
		Period: s.config.Controllers.SystemdUnitCheck.SyncPeriod.Duration, Stuck: s.config.Controllers.SystemdUnitCheck.StuckThreshold.Duration,
	}
	drifts := &drift.Controller{Node: s.node, Events: s.events, Systemd: s.Systemd, Applier: s.applier, Files: s.Files}
	return map[string]func(context.Context) (time.Duration, error){
		"node": s.alone(restarts.Run), "lease": leases.Run, "hostname": s.hostname,
		"health": s.alone(checks.Run), "units": units.Run, "drift": s.alone(drifts.Run),
	}
}

// wakeOnce wakes the controller of the Lease when the Node appears, and not for each change of it.
func (s *run) wakeOnce(loops []*loop.Loop) {
	for _, each := range loops {
		if each.Name != "lease" {
			continue
		}
		var uid string
		s.node.OnChange(func() {
			if node, _ := s.node.Get(); node != nil && string(node.UID) != uid {
				uid = string(node.UID)
				each.Wake()
			}
		})
	}
}

// hostname ends the session if the name of the machine has changed.
func (s *run) hostname(context.Context) (time.Duration, error) {
	name, err := s.Hostname()
	if err != nil {
		return 0, err
	}
	if name = strings.ToLower(name); name != s.host {
		return 0, loop.End(fmt.Errorf("%w: its name was %s and is %s", errChanged, s.host, name))
	}
	return hostnamePeriod, nil
}

// authoritiesChanged ends the session if a new configuration has other authorities of the API server.
func (s *run) authoritiesChanged() error {
	if s.config.ClientConnection.Kubeconfig != "" {
		return nil
	}
	now, err := s.files.Authorities()
	if err != nil {
		return err
	}
	if string(now) != s.authorities {
		return loop.End(fmt.Errorf("%w: the authorities of the API server are others", errChanged))
	}
	return nil
}

// startTokens starts the watches and the controllers of tokens.
func (s *run) startTokens(background func(func(context.Context))) {
	for _, each := range s.config.Controllers.Token.SyncConfigs {
		secret := &cluster.Watched[corev1.Secret]{}
		writes := &token.Controller{Secret: secret, Files: s.Files, Path: each.Path, Log: s.Log}
		l := s.newLoop("token", writes.Run)
		secret.OnChange(l.Wake)
		background(func(ctx context.Context) { s.client.WatchSecret(ctx, each.SecretName, secret) })
		background(func(ctx context.Context) { _ = l.Start(ctx) })
	}
}
