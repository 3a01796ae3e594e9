package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// fleetUp starts the base cluster and installs a garden and a seed on it.
func fleetUp(o *landscape.Options) *cobra.Command {
	withNodes := true
	c := &cobra.Command{Use: "fleet", Short: "Start the base cluster, and install a garden, a seed and Shoots on it", Args: cobra.NoArgs,
		Long: "Start the base cluster, install a garden and a seed on it with their charts, and create a Shoot without nodes and one with two nodes.\n\n" +
			"It continues an interrupted installation, and updates an existing one to the current source.",
		RunE: func(c *cobra.Command, _ []string) error {
			l, f, say, err := started(c.Context(), o, "Installing the fleet.")
			if err != nil {
				return err
			}
			if !withNodes {
				if err := f.Up(c.Context()); err != nil {
					return err
				}
				return explain(l, f, false, say)
			}
			if err := f.UpWithNodes(c.Context()); err != nil {
				return err
			}
			return explain(l, f, true, say)
		}}
	c.Flags().BoolVar(&withNodes, "nodes", true, "create a Shoot with two nodes, and a user's Deployment in it")
	return c
}

// started starts the base cluster, and returns what installs on it, and a function that prints a line.
func started(ctx context.Context, o *landscape.Options, next string) (*landscape.Landscape, *fleet.Fleet, func(string, ...any), error) {
	l, err := landscape.New(*o)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := l.Up(ctx); err != nil {
		return nil, nil, nil, err
	}
	say := func(format string, arguments ...any) { fmt.Fprintf(o.Out, format+"\n", arguments...) }
	say("%s", next)
	f, err := fleet.New(l, say)
	return l, f, say, err
}

// explain writes the kubeconfigs of the fleet, and prints commands to inspect it. The garden and the seed are the base
// cluster.
func explain(l *landscape.Landscape, f *fleet.Fleet, withNodes bool, say func(string, ...any)) error {
	content, err := os.ReadFile(l.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the base cluster: %w", err)
	}
	for _, name := range []string{"garden", "seed"} {
		file := filepath.Join(l.Directory, name+".kubeconfig")
		if err := os.WriteFile(file, content, 0o600); err != nil { //nolint:gosec // the directory of the landscape
			return fmt.Errorf("writing the kubeconfig of the %s: %w", name, err)
		}
	}
	say(nextSteps, filepath.Join(l.Directory, "garden.kubeconfig"), f.ShootKubeconfig())
	if withNodes {
		say(nextStepsOfNodes, f.NodesKubeconfig())
	}
	say("\nRemove the fleet with: make landscape-down")
	return nil
}

// nextSteps are commands for users. The arguments are the paths of the kubeconfigs of the garden and of the Shoot.
const nextSteps = `
  export KUBECONFIG=%s
  bin/kubectl get seeds,shoots --all-namespaces
  bin/kubectl-mr get shoot/garden-dev/registry   # the ManagedResources of its control plane
  bin/kubectl-mr top seed/local                  # those of the seed, live
  bin/kubectl-mr ui                              # all of them, in the browser
  bin/kubectl --kubeconfig %s get namespaces`

// nextStepsOfNodes are commands for the Shoot with nodes. The argument is the path of its kubeconfig.
const nextStepsOfNodes = `  bin/kubectl --kubeconfig %s get nodes,pods --all-namespaces`
