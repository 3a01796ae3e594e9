package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// seedOfVirtualGarden makes the base cluster a Seed of the virtual garden that runs on it, and creates a Shoot on this Seed: gardenlet may do only what
// the authorizer of the virtual garden lets it do, and all admission plugins are enabled. Garden, Seed and Shoot share the cluster, and a second call
// changes nothing. Then the Shoot and the Seed are deleted, and the Garden stays ready. With -landscape.nodes, there is also a Shoot with nodes, in which a
// user's program responds.
func (c *cluster) seedOfVirtualGarden(of *fleet.Fleet) {
	c.t.Helper()
	if !*virtual {
		c.t.Skip("takes minutes: -landscape.virtual")
	}
	f, err := of.InVirtualGarden(c.ctx)
	must(c.t, err)
	stop := c.logInstallations(f)
	defer stop()
	must(c.t, f.UpSeed(c.ctx, *nodes))
	c.inspectGarden(of)
	c.inShoot(f)
	began := time.Now()
	must(c.t, f.UpSeed(c.ctx, *nodes))
	c.t.Logf("Second call of UpSeed without changes: %s", time.Since(began).Round(time.Second))
	must(c.t, of.GardenIsReady(c.ctx))

	if *nodes {
		must(c.t, f.DeleteShootWithNodes(c.ctx))
	}
	must(c.t, f.DeleteShoot(c.ctx))
	must(c.t, f.DeleteSeed(c.ctx))
	must(c.t, f.UninstallSeed(c.ctx))
	must(c.t, of.GardenIsReady(c.ctx))
}

// inspectGarden runs the commands of docs/landscape.md with which operators inspect the Garden.
func (c *cluster) inspectGarden(f *fleet.Fleet) {
	c.t.Helper()
	garden, err := f.WriteGardenKubeconfig(c.ctx)
	must(c.t, err)
	for _, inspection := range []struct{ kubeconfig, arguments, want string }{
		{base.Kubeconfig(), "get gardens", fleet.GardenName},
		{base.Kubeconfig(), "get managedresources --namespace garden", "virtual-garden-kube-apiserver"},
		{garden, "get seeds,shoots,projects --all-namespaces", "shoot.core.gardener.cloud/registry"},
	} {
		command := exec.CommandContext(c.ctx, filepath.Join(base.Root, "bin", "kubectl"), strings.Fields(inspection.arguments)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+inspection.kubeconfig)
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), inspection.want) {
			c.t.Errorf("kubectl %s: %v", inspection.arguments, err)
		}
		c.t.Logf("kubectl %s\n%s", inspection.arguments, output)
	}
}
