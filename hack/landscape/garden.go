package main

import (
	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/test/landscape"
)

// gardenUp starts the base cluster, and installs a Garden with the operator, a Seed and a Shoot on it.
func gardenUp(o *landscape.Options) *cobra.Command {
	withSeed, withNodes := true, false
	c := &cobra.Command{Use: "garden", Short: "Start the base cluster, and install a Garden with the operator, a Seed and a Shoot on it", Args: cobra.NoArgs,
		Long: "Start the base cluster, install the operator on it with its chart, and create a Garden. Make the base cluster a Seed of the virtual garden, and\n" +
			"create a Shoot without nodes.\n\n" +
			"It continues an interrupted installation, and updates an existing one to the current source. A base cluster with a fleet must be removed first.",
		Example: "  landscape garden\n  landscape garden --nodes        # with a Shoot that has two nodes\n  landscape garden --seed=false   # only the Garden",
		RunE: func(c *cobra.Command, _ []string) error {
			l, f, say, err := started(c.Context(), o, "Installing the Garden.")
			if err != nil {
				return err
			}
			if err := f.UpGarden(c.Context()); err != nil {
				return err
			}
			file, err := f.WriteGardenKubeconfig(c.Context())
			if err != nil {
				return err
			}
			if withSeed {
				inside, err := f.InVirtualGarden(c.Context())
				if err != nil {
					return err
				}
				if err := inside.UpSeed(c.Context(), withNodes); err != nil {
					return err
				}
			}
			say(nextStepsOfGarden, l.Kubeconfig(), file)
			if withSeed {
				say(nextStepOfShoot, f.ShootKubeconfig())
			}
			if withSeed && withNodes {
				say(nextStepsOfNodes, f.NodesKubeconfig())
			}
			say("\nRemove all of it with: make landscape-down")
			return nil
		}}
	c.Flags().BoolVar(&withNodes, "nodes", false, "also create a Shoot with two nodes, and a user's Deployment in it")
	c.Flags().BoolVar(&withSeed, "seed", true, "make the base cluster a Seed, and create a Shoot")
	return c
}

// nextStepsOfGarden are commands for users. The arguments are the paths of the kubeconfigs of the runtime cluster and of the virtual garden.
const nextStepsOfGarden = `
  export KUBECONFIG=%s
  bin/kubectl get gardens             # the state of the Garden
  bin/kubectl-mr get -n garden        # its ManagedResources
  bin/kubectl --kubeconfig %s get seeds,shoots,projects --all-namespaces`

// nextStepOfShoot is a command for the Shoot. The argument is the path of its kubeconfig.
const nextStepOfShoot = `  bin/kubectl --kubeconfig %s get namespaces`
