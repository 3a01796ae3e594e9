package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// fleetUp starts the base cluster and installs a garden and a seed on it.
func fleetUp(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "fleet", Short: "Start the base cluster, and install a garden and a seed on it", Args: cobra.NoArgs,
		Long: "Start the base cluster, and install a garden and a seed on it, with their charts.\n\n" +
			"It continues an interrupted installation, and updates an existing one to the current source.",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			if err := l.Up(c.Context()); err != nil {
				return err
			}
			say := func(format string, arguments ...any) { fmt.Fprintf(o.Out, format+"\n", arguments...) }
			say("Installing the fleet.")
			f, err := fleet.New(l, say)
			if err != nil {
				return err
			}
			if err := f.Up(c.Context()); err != nil {
				return err
			}
			return explain(l, say)
		}}
}

// explain writes the kubeconfigs of the fleet, and prints commands to inspect it. The garden and the seed are the base
// cluster.
func explain(l *landscape.Landscape, say func(string, ...any)) error {
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
	say("\n  export KUBECONFIG=%s\n  bin/kubectl get seeds\n  bin/kubectl-mr get seed/local\n"+
		"  bin/kubectl-mr get shoot/garden-dev/registry\n\nRemove it with: make landscape-down",
		filepath.Join(l.Directory, "garden.kubeconfig"))
	return nil
}
