// Package bootstrap makes a new machine run the node agent, and removes it again.
package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/units"
)

// unitMode is the mode of unit files.
const unitMode = 0o644

// Machine is the machine to change.
type Machine struct {
	Files    host.Files
	Systemd  host.Systemd
	Commands host.Commands
	Log      logr.Logger
}

// Install formats the data disk of kubelet if the configuration names one, makes the node agent a systemd service, starts it, and disables the unit that
// called it. It may be repeated.
func Install(ctx context.Context, m Machine, config *v1alpha1.NodeAgentConfiguration) error {
	if err := m.Files.MakeDirectory(paths.Temporary); err != nil {
		return err
	}
	if config.Bootstrap != nil && config.Bootstrap.KubeletDataVolumeSize != nil {
		if err := m.dataDisk(ctx, *config.Bootstrap.KubeletDataVolumeSize); err != nil {
			return fmt.Errorf("the data disk of kubelet: %w", err)
		}
	}
	if err := errors.Join(
		m.Files.Write(paths.Units+"/"+paths.FallbackUnit, []byte(units.Fallback()), unitMode),
		m.Files.Write(paths.Units+"/"+paths.AgentUnit, []byte(units.Agent()), unitMode),
	); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return m.Systemd.Reload(ctx) },
		func() error { return m.Systemd.Enable(ctx, paths.AgentUnit) },
		func() error { return m.Systemd.Start(ctx, paths.AgentUnit) },
		func() error { return m.Systemd.Disable(ctx, paths.InitUnit) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	m.Log.Info("The node agent is installed", "unit", paths.AgentUnit)
	return nil
}
