package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// TestFleet makes the base cluster a garden and a seed with their charts, as `make landscape` does: the API server and the controllers of the
// garden, the gardenlet, which registers its Seed, all that the Seed's flow emits, provider-local as an extension, and a Shoot without workers, in
// real containers. The Shoot's API server answers; then all is deleted.
func TestFleet(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	must(t, resourcesv1alpha1.AddToScheme(c.Scheme()))
	f, err := fleet.New(base, t.Logf)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			c.explain()
		}
	})
	must(t, f.Up(c.ctx))
	c.inShoot(f)

	began := time.Now()
	must(t, f.Up(c.ctx))
	t.Logf("All of it once more, with nothing changed: %s", time.Since(began).Round(time.Second))

	must(t, f.DeleteShoot(c.ctx))
	must(t, f.DeleteSeed(c.ctx))
	c.nothingIsLeft()
	must(t, f.Uninstall(c.ctx))
}

// inShoot does what users do in their cluster.
func (c *cluster) inShoot(f *fleet.Fleet) {
	c.t.Helper()
	kubectl := func(arguments ...string) string {
		command := exec.CommandContext(c.ctx, filepath.Join(base.Root, "bin", "kubectl"), append([]string{"--kubeconfig", f.ShootKubeconfig()}, arguments...)...)
		output, err := command.CombinedOutput()
		if err != nil {
			c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
		return string(output)
	}
	kubectl("create", "namespace", "shop")
	kubectl("create", "configmap", "settings", "--namespace=shop", "--from-literal=color=green")
	c.eventually("the controllers of the Shoot work", func() error {
		if found := kubectl("get", "serviceaccounts,configmaps", "--namespace=shop", "--output=name"); !strings.Contains(found, "serviceaccount/default") ||
			!strings.Contains(found, "kube-root-ca.crt") {
			return fmt.Errorf("the namespace has %q", found)
		}
		return nil
	})
	c.t.Logf("In the Shoot:\n%s", kubectl("get", "namespaces,priorityclasses,configmaps", "--all-namespaces"))
}

// nothingIsLeft: what the Seed emitted is gone, but what it shares with others and the resource-manager.
func (c *cluster) nothingIsLeft() {
	c.t.Helper()
	left := &resourcesv1alpha1.ManagedResourceList{}
	must(c.t, c.List(c.ctx, left))
	for _, mr := range left.Items {
		c.t.Errorf("ManagedResource %s/%s is left", mr.Namespace, mr.Name)
	}
	deployments := &appsv1.DeploymentList{}
	must(c.t, c.List(c.ctx, deployments, client.InNamespace(constants.GardenNamespace)))
	for _, d := range deployments.Items {
		if d.Name != "gardenlet" && d.Name != resourceManager {
			c.t.Errorf("Deployment %s is left", d.Name)
		}
	}
}

// explain shows what a user would look at first.
func (c *cluster) explain() {
	for _, arguments := range [][]string{
		{"get", "seeds,shoots,controllerinstallations", "--all-namespaces"}, {"get", "managedresources", "--all-namespaces"},
		{"get", "pods", "--all-namespaces"},
	} {
		output, err := c.tryKubectl(arguments...)
		c.t.Logf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}
