package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/examples"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// tourNamespace holds the Secrets and ManagedResources of the tour.
	tourNamespace = "garden"

	tourInterval = 50 * time.Millisecond
	// tourTimeout limits each wait for a step that takes seconds.
	tourTimeout = time.Minute
	// putBackInterval is how often the tour checks whether a change is reverted, which takes some milliseconds.
	putBackInterval = 2 * time.Millisecond
)

// webshop is the delivery of the tour.
var webshop = []delivery{
	{name: "webshop-base", folder: "webshop/base"},
	{name: "webshop-app", folder: "webshop/app", compress: true},
}

// guide leads through the tour.
type guide struct {
	client  client.Client
	kubectl kubectl
	out     io.Writer
	files   fs.FS
}

// tour demonstrates the resource-manager and the garden's API server on a running control plane. It can be repeated.
func tour(ctx context.Context, config *rest.Config, kubectl kubectl, out io.Writer) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("setting up the tour: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the tour measures the resource-manager, not a throttled client
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("setting up the tour: %w", err)
	}
	g := &guide{client: c, kubectl: kubectl, out: out, files: examples.Files}
	if err := g.checkCluster(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{g.deliver, g.awaitPods, g.look, g.change, g.declare, g.use} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	g.sayHowToGoOn()
	return nil
}

func (g *guide) say(format string, args ...any) { fmt.Fprintf(g.out, format+"\n", args...) }

func (g *guide) heading(text string) {
	g.say("\n── %s %s", text, strings.Repeat("─", max(3, 96-len([]rune(text)))))
}

func (g *guide) checkCluster(ctx context.Context) error {
	err := g.client.List(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.Limit(1))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the control plane does not serve ManagedResources, was it started with --control-plane-only? "+
			"`make down` and `make demo` start everything: %w", err)
	}
	if err != nil {
		return fmt.Errorf("looking for ManagedResources: %w", err)
	}
	return nil
}

// deliver writes the Secrets and ManagedResources of the web shop and waits until they are applied.
func (g *guide) deliver(ctx context.Context) error {
	g.heading("1 of 6: deliver a web shop (a few seconds)")
	g.say(`The manifests of examples/webshop go into two Secrets, each referenced by a ManagedResource, and the
resource-manager applies them. The Secrets are immutable and named after their content, as
` + "`kubectl mr create`" + ` creates them.
`)
	parcels := make([]*parcel, 0, len(webshop))
	for _, delivery := range webshop {
		p, err := delivery.pack(g.files)
		if err != nil {
			return err
		}
		parcels = append(parcels, p)
		g.say("  %-13s %s", p.name, p.Describe())
	}
	g.say(`
Both are written at once. webshop-app needs the namespace and the kind Coupon of webshop-base; it need not
wait for them, since objects that cannot be applied yet are retried:
`)
	if err := g.prepare(ctx, parcels[0]); err != nil {
		return err
	}
	start, changed := time.Now(), false
	for _, p := range parcels {
		written, err := p.write(ctx, g.client)
		if err != nil {
			return err
		}
		changed = changed || written
	}
	err := awaitApplied(ctx, g.client, parcels, func(name string, condition resourcesv1alpha1.Condition) {
		g.say("  %6s  %-13s %-12s %s", took(start), name, condition.Status, shorten(condition.Message, 62))
	})
	if err != nil {
		return err
	}
	if !changed {
		g.say("\nNothing has changed since the last tour, so there was nothing to do.")
		return nil
	}
	g.say("\nApplied after %s.", took(start))
	return nil
}

// prepare creates a ManagedResource in a dry run. The API server delays the first objects of a new kind for two seconds. The dry run keeps this
// delay out of the measurement.
func (g *guide) prepare(ctx context.Context, p *parcel) error {
	if err := client.IgnoreAlreadyExists(g.client.Create(ctx, p.ManagedResource.DeepCopy(), client.DryRunAll)); err != nil {
		return fmt.Errorf("checking that ManagedResources can be created: %w", err)
	}
	return nil
}

// awaitPods waits until the storefront has the minimum number of ready Pods of its autoscaler.
func (g *guide) awaitPods(ctx context.Context) error {
	g.heading("2 of 6: wait for the pods (a few seconds)")
	g.say(`The nodes and pods are simulated, all controllers are the real ones: Kubernetes creates a ReplicaSet for the
Deployment, the autoscaler raises it to two pods, and the scheduler finds nodes for them.
`)
	deployment, autoscaler := &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}
	if err := errors.Join(g.readExample("webshop/app/deployment.yaml", deployment),
		g.readExample("webshop/app/autoscaler.yaml", autoscaler)); err != nil {
		return err
	}
	wanted := ptr.Deref(autoscaler.Spec.MinReplicas, 1)
	start, reported := time.Now(), int32(-1)
	err := wait.PollUntilContextTimeout(ctx, tourInterval, tourTimeout, true, func(ctx context.Context) (bool, error) {
		if err := g.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return false, err
		}
		ready := deployment.Status.ReadyReplicas
		if ready != reported {
			reported = ready
			g.say("  %6s  %d of %d pods ready", took(start), ready, wanted)
		}
		return ready >= wanted, nil
	})
	if err != nil {
		return fmt.Errorf("the Deployment %s has %d of %d pods ready, see kube-controller-manager.log and kube-scheduler.log: %w",
			client.ObjectKeyFromObject(deployment), deployment.Status.ReadyReplicas, wanted, err)
	}
	return nil
}

// readExample decodes a file that contains one object.
func (g *guide) readExample(name string, into any) error {
	content, err := fs.ReadFile(g.files, name)
	if err != nil {
		return fmt.Errorf("reading the example: %w", err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return fmt.Errorf("decoding the example %s: %w", name, err)
	}
	return nil
}

// look prints all ManagedResources, and the objects of those of the tour.
func (g *guide) look(ctx context.Context) error {
	g.heading("3 of 6: look at it")
	g.say("The ManagedResources (`kubectl get mr -A`):\n")
	all := &resourcesv1alpha1.ManagedResourceList{}
	if err := g.client.List(ctx, all); err != nil {
		return fmt.Errorf("listing the ManagedResources: %w", err)
	}
	header := []string{"NAME", "CLASS", "APPLIED", "OBJECTS", "AGE", "MESSAGE"}
	if err := printTable(g.out, header, managedResourceRows(all.Items, time.Now())); err != nil {
		return err
	}
	g.say("\nThe objects of the web shop, and the objects that Kubernetes created for them:\n")
	owners, err := readOwners(ctx, g.client)
	if err != nil {
		return err
	}
	var trees []node
	for _, delivery := range webshop {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := g.client.Get(ctx, client.ObjectKey{Namespace: tourNamespace, Name: delivery.name}, mr); err != nil {
			return fmt.Errorf("reading ManagedResource %s: %w", delivery.name, err)
		}
		tree, err := readTree(ctx, g.client, mr, owners)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	return printTree(g.out, trees)
}

// change edits an object as a user might, and waits until the change is reverted.
func (g *guide) change(ctx context.Context) error {
	const key, byHand = "BANNER", "Everything for free!"
	g.heading("4 of 6: change something by hand")
	g.say(`A user edits the banner of the storefront, as with ` + "`kubectl edit`" + `. The resource-manager watches
the object and reverts the change.
`)
	configMap := &corev1.ConfigMap{}
	if err := g.readExample("webshop/base/configmap.yaml", configMap); err != nil {
		return err
	}
	wanted, name := configMap.Data[key], client.ObjectKeyFromObject(configMap)
	if err := g.client.Get(ctx, name, configMap); err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	g.say("  before    %s %s: %q", name, key, configMap.Data[key])

	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: byHand}})
	if err != nil {
		return fmt.Errorf("changing ConfigMap %s: %w", name, err)
	}
	err = g.client.Patch(ctx, configMap, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit"))
	if err != nil {
		return fmt.Errorf("changing ConfigMap %s: %w", name, err)
	}
	g.say("  changed   %s %s: %q", name, key, configMap.Data[key])

	start := time.Now()
	err = wait.PollUntilContextTimeout(ctx, putBackInterval, tourTimeout, true, func(ctx context.Context) (bool, error) {
		err := g.client.Get(ctx, name, configMap)
		return configMap.Data[key] == wanted, err
	})
	if err != nil {
		return fmt.Errorf("the resource-manager has not reverted ConfigMap %s, see resource-manager.log: %w", name, err)
	}
	g.say("corrected %s %s: %q after %s", name, key, configMap.Data[key], time.Since(start).Round(time.Millisecond))
	return nil
}

func (g *guide) sayHowToGoOn() {
	g.heading("How to go on")
	g.say(`  export KUBECONFIG=$PWD/.run/kubeconfig
  bin/kubectl get mr -A                           # all ManagedResources
  bin/kubectl-mr get -A                           # the same at a glance; tree, why and others: docs/cli.md
  bin/kubectl-mr top -A                           # live, on the whole screen
  bin/kubectl get all,coupons -n webshop          # the results
  bin/kubectl apply -f examples/hello.yaml        # deliver something yourself: a Secret and a ManagedResource
  bin/kubectl get configmap,pods -n hello
  bin/kubectl api-resources | grep gardener.cloud # the kinds of the garden; an example of each: examples/fleet
  bin/kubectl patch shoot registry -n garden-dev --type merge -p '{"spec":{"hibernation":{"enabled":true}}}'
  bin/kubectl get shoots -A --watch               # its control plane goes to sleep; with false it wakes up
  bin/kubectl annotate shoot registry -n garden-dev confirmation.gardener.cloud/deletion=true
  bin/kubectl delete shoot registry -n garden-dev
  make down                                       # stop everything and remove its files`)
}

// took returns the time since start for messages.
func took(start time.Time) string { return fmt.Sprintf("%.1f s", time.Since(start).Seconds()) }
