package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// shootOfFleet is the Shoot that Up creates.
var shootOfFleet = client.ObjectKey{Namespace: "garden-dev", Name: "registry"}

// TestFleet installs a garden and a seed on the base cluster with their charts, as `make landscape` does: the API server
// and the controllers of the garden, the gardenlet, which registers its Seed, all objects of the Seed's flow,
// provider-local as an extension, and a Shoot without workers, in real containers. When the Shoot's API server responds,
// everything is deleted.
func TestFleet(t *testing.T) {
	c, f := onFleet(t)
	if *extensions {
		makeMachineImages(t)
	}
	stop := c.logInstallations(f)
	defer stop()
	must(t, f.Up(c.ctx))
	lines, err := f.Timeline(c.ctx, shootOfFleet)
	must(t, err)
	t.Logf("The Shoot started:\n%s", strings.Join(lines, "\n"))
	c.installed(f)
	c.inspect()
	c.inShoot(f)
	c.extensionsOfShoot(f)
	t.Run("isolation", func(t *testing.T) { c.in(t).isolated(f) })
	if *extensions {
		c.extensionKinds(f, c.shoot(f).Status.TechnicalID)
	}

	began := time.Now()
	must(t, f.Up(c.ctx))
	t.Logf("Second call of Up without changes: %s", time.Since(began).Round(time.Second))

	shoot := c.shoot(f)
	must(t, f.DeleteShoot(c.ctx))
	c.nothingOfShootIsLeft(f, shoot)
	must(t, f.DeleteSeed(c.ctx))
	c.nothingIsLeft()
	must(t, f.Uninstall(c.ctx))
}

// inspect runs the commands of docs/landscape.md with which operators inspect the fleet.
func (c *cluster) inspect() {
	c.t.Helper()
	for _, inspection := range []struct{ program, arguments, want string }{
		{"kubectl", "get seeds,shoots --all-namespaces", "shoot.core.gardener.cloud/registry"},
		{"kubectl", "get service --namespace istio-ingress", constants.IstioIngressGatewayName},
		{"kubectl", "get tlsroutes --all-namespaces", "kube-apiserver"},
		{"kubectl-mr", "get shoot/garden-dev/registry", "kube-controller-manager"},
	} {
		command := exec.CommandContext(c.ctx, filepath.Join(base.Root, "bin", inspection.program), strings.Fields(inspection.arguments)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+base.Kubeconfig())
		if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), inspection.want) {
			c.t.Errorf("%s %s: %v\n%s", inspection.program, inspection.arguments, err, output)
		}
	}
}

// inShoot uses the cluster as its users do.
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
	c.eventually("the controllers of the Shoot are running", func() error {
		if found := kubectl("get", "serviceaccounts,configmaps", "--namespace=shop", "--output=name"); !strings.Contains(found, "serviceaccount/default") ||
			!strings.Contains(found, "kube-root-ca.crt") {
			return fmt.Errorf("the namespace has %q", found)
		}
		return nil
	})
	c.t.Logf("In the Shoot:\n%s", kubectl("get", "namespaces,priorityclasses,configmaps", "--all-namespaces"))
}

// extensionsOfShoot checks that both extensions have acted in the seed and in the Shoot, and that the DNS server of the
// landscape resolves the API server's name.
func (c *cluster) extensionsOfShoot(f *fleet.Fleet) {
	c.t.Helper()
	shoot, service := c.shoot(f), &corev1.Service{}
	namespace := shoot.Status.TechnicalID
	must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: namespace, Name: "extension-local-ext-seed"}, &corev1.ServiceAccount{}))
	output, err := exec.CommandContext(c.ctx, filepath.Join(base.Root, "bin", "kubectl"), "--kubeconfig", f.ShootKubeconfig(),
		"get", "serviceaccount", "--namespace=kube-system", "extension-local-ext-shoot").CombinedOutput()
	if err != nil {
		c.t.Fatalf("the objects of the extension are missing in the Shoot: %v\n%s", err, output)
	}
	must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: "istio-ingress", Name: constants.IstioIngressGatewayName}, service))
	host := strings.TrimPrefix(shoot.Status.AdvertisedAddresses[0].URL, "https://")
	c.resolves(host, service.Status.LoadBalancer.Ingress[0].IP)
}

// shoot returns the Shoot of the fleet.
func (c *cluster) shoot(f *fleet.Fleet) *corev1beta1.Shoot {
	c.t.Helper()
	shoot := &corev1beta1.Shoot{}
	must(c.t, f.Get(c.ctx, shootOfFleet, shoot))
	return shoot
}

// resolves waits until the DNS server of the landscape returns one address for a name.
func (c *cluster) resolves(host, want string) {
	c.t.Helper()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(base.Network.DNS().String(), "53"))
	}}
	began := time.Now()
	c.eventually("the DNS server of the landscape resolves "+host, func() error {
		addresses, err := resolver.LookupHost(c.ctx, host)
		if err == nil && (len(addresses) != 1 || addresses[0] != want) {
			err = fmt.Errorf("the name has the addresses %v, want %s", addresses, want)
		}
		return err
	})
	c.t.Logf("resolved %s after %s", host, time.Since(began).Round(100*time.Millisecond))
}

// nothingIsLeft checks that the objects of the Seed are deleted, except for shared ones and the resource-manager.
func (c *cluster) nothingIsLeft() {
	c.t.Helper()
	left := &resourcesv1alpha1.ManagedResourceList{}
	must(c.t, c.List(c.ctx, left))
	for _, mr := range left.Items {
		c.t.Errorf("ManagedResource %s/%s still exists", mr.Namespace, mr.Name)
	}
	deployments := &appsv1.DeploymentList{}
	must(c.t, c.List(c.ctx, deployments, client.InNamespace(constants.GardenNamespace)))
	for _, d := range deployments.Items {
		if d.Name != "gardenlet" && d.Name != resourceManager {
			c.t.Errorf("Deployment %s still exists", d.Name)
		}
	}
}

// explain logs the objects that a user would inspect first.
func (c *cluster) explain() {
	for _, arguments := range [][]string{
		{"get", "seeds,shoots,controllerinstallations", "--all-namespaces"}, {"get", "managedresources", "--all-namespaces"},
		{"get", "pods", "--all-namespaces"},
	} {
		c.show(arguments...)
	}
}
