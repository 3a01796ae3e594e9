package bootstrap

import (
	"context"
	"errors"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Reset removes what the node agent has put on the machine: units, files, credentials and its own state. Settings of containerd stay. It may be repeated.
// The Node is not deleted.
func Reset(ctx context.Context, m Machine, applier *apply.Applier) error {
	// The running node agent would apply its configuration again.
	if err := errors.Join(m.Systemd.Disable(ctx, paths.AgentUnit), m.Systemd.Stop(ctx, paths.AgentUnit)); err != nil {
		return err
	}
	if err := applier.Apply(ctx, "reset", &osc.Config{}); err != nil {
		return err
	}
	var errs []error
	for _, path := range []string{
		paths.Units + "/" + paths.AgentUnit, paths.Units + "/" + paths.FallbackUnit, paths.KubeletBootstrap, paths.KubeletKubeconfig,
		paths.Kubelet + "/pki", paths.Agent, paths.Previous, paths.Refused, paths.Base,
	} {
		errs = append(errs, m.Files.Remove(path))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m.Log.Info("The node agent is removed")
	return m.Systemd.Reload(ctx)
}
