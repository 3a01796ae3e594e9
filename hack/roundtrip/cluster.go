package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

const namespace = "roundtrip"

// cluster is a control plane with a resource-manager.
type cluster struct {
	cp      *controlplane.ControlPlane
	client  client.Client
	options options
	out     io.Writer
	config  string
	manager *controlplane.Process
	starts  int
}

// times are the durations of the steps.
type times struct{ applied, pruned, deleted time.Duration }

func newCluster(ctx context.Context, cp *controlplane.ControlPlane, opts options) (*cluster, error) {
	if _, err := envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{
		Paths: []string{"config/crd"}, ErrorIfPathMissing: true,
	}); err != nil {
		return nil, fmt.Errorf("install the CustomResourceDefinitions (run this from the project's root): %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	result := &cluster{cp: cp, client: c, options: opts, out: os.Stdout, config: filepath.Join(cp.Dir(), "resource-manager.yaml")}
	if err := result.writeConfig(); err != nil {
		return nil, err
	}
	if err := result.startManager(); err != nil {
		return nil, err
	}
	return result, nil
}

func (c *cluster) writeConfig() error {
	health, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	metrics, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	return os.WriteFile(c.config, fmt.Appendf(nil, `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection:
  kubeconfig: %s
  qps: -1
leaderElection:
  leaderElect: false
server:
  healthProbes:
    bindAddress: 127.0.0.1
    port: %d
  metrics:
    bindAddress: 127.0.0.1
    port: %d
logFormat: text
`, filepath.Join(c.cp.Dir(), "kubeconfig"), health, metrics), 0o600)
}

func (c *cluster) startManager() (err error) {
	c.starts++
	c.manager, err = c.cp.StartProcess(fmt.Sprintf("resource-manager-%d", c.starts), c.options.binary, "--config", c.config)
	return err
}

// roundtrip applies, shrinks and deletes the manifests, and checks each step.
func (c *cluster) roundtrip(ctx context.Context, name string, set manifests) (times, error) {
	var result times
	var err error
	if result.applied, err = c.timed("applied", func() error { return c.apply(ctx, name, set) }); err != nil {
		return result, err
	}
	if c.options.nodes > 0 {
		if err := c.printHealth(ctx, name); err != nil {
			return result, err
		}
	}
	smaller, removed, err := set.withoutLast()
	if err != nil {
		return result, err
	}
	fmt.Fprintf(c.out, "  removing %s %s\n", removed.GetKind(), removed.GetName())
	result.pruned, err = c.timed("pruned", func() error {
		return errors.Join(c.apply(ctx, name, smaller), c.awaitGone(ctx, []*unstructured.Unstructured{removed}))
	})
	if err != nil {
		return result, err
	}
	result.deleted, err = c.timed("deleted", func() error { return c.delete(ctx, name, set) })
	return result, err
}

func (c *cluster) timed(what string, do func() error) (time.Duration, error) {
	start := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	took := time.Since(start).Round(10 * time.Millisecond)
	fmt.Fprintf(c.out, "  %s after %s\n", what, took)
	return took, nil
}

// killRound applies and deletes the manifests while the resource-manager is killed and restarted.
func (c *cluster) killRound(ctx context.Context, name string, set manifests, usual times, round int) error {
	applyAfter, deleteAfter := randomMoment(usual.applied), randomMoment(usual.deleted)
	killed := c.killAfter(applyAfter)
	if err := errors.Join(c.apply(ctx, name, set), <-killed); err != nil {
		return err
	}
	killed = c.killAfter(deleteAfter)
	if err := errors.Join(c.delete(ctx, name, set), <-killed); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "  round %d: killed %s into the apply and %s into the delete: all %d objects exist, then none\n",
		round, applyAfter.Round(time.Millisecond), deleteAfter.Round(time.Millisecond), len(set.objects()))
	return nil
}

func randomMoment(within time.Duration) time.Duration {
	return rand.N(max(within, time.Millisecond)) //nolint:gosec // no secret
}

func (c *cluster) killAfter(delay time.Duration) <-chan error {
	result := make(chan error, 1)
	go func() {
		<-time.After(delay)
		_ = c.manager.Stop(0) // it is killed, so it ends with an error
		result <- c.startManager()
	}()
	return result
}

// apply writes the Secrets and the ManagedResource, waits until it is applied, and checks that every object exists.
func (c *cluster) apply(ctx context.Context, name string, set manifests) error {
	secrets, err := set.secrets(c.options.brotli)
	if err != nil {
		return err
	}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{}
	stamp := fmt.Sprint(time.Now().UnixNano())
	for i, data := range secrets {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%s-%d", name, stamp, i)}, Data: data,
		}
		if err := c.client.Create(ctx, secret); err != nil {
			return fmt.Errorf("create Secret: %w", err)
		}
		mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, resourcesv1alpha1.LocalObjectReference{Name: secret.Name})
	}
	spec := mr.Spec
	err = c.client.Get(ctx, client.ObjectKeyFromObject(mr), mr)
	switch {
	case apierrors.IsNotFound(err):
		err = c.client.Create(ctx, mr)
	case err == nil:
		patch := client.MergeFrom(mr.DeepCopy())
		mr.Spec = spec
		err = c.client.Patch(ctx, mr, patch)
	}
	if err != nil {
		return fmt.Errorf("write ManagedResource: %w", err)
	}
	if err := c.awaitApplied(ctx, mr); err != nil {
		return err
	}
	if got, want := len(mr.Status.Resources), len(set.objects()); got != want {
		return fmt.Errorf("the inventory has %d objects, the manifests %d", got, want)
	}
	for _, object := range set.objects() {
		if err := c.get(ctx, object); err != nil {
			return fmt.Errorf("%s %s is in the manifests: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (c *cluster) awaitApplied(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	last := "no condition"
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, c.options.timeout, true, func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(mr), mr); err != nil {
			return false, err
		}
		for _, condition := range mr.Status.Conditions {
			if condition.Type == resourcesv1alpha1.ResourcesApplied {
				last = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
				return condition.Status == resourcesv1alpha1.ConditionTrue && mr.Status.ObservedGeneration == mr.Generation, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("ResourcesApplied is not True: %s: %w", last, err)
	}
	return nil
}

// delete deletes the ManagedResource, waits until it no longer exists, and checks that no object of the manifests
// remains.
func (c *cluster) delete(ctx context.Context, name string, set manifests) error {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.client.Delete(ctx, mr); err != nil {
		return fmt.Errorf("delete ManagedResource: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, c.options.timeout, true, func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(mr), mr)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("the ManagedResource still exists: conditions %+v: %w", mr.Status.Conditions, err)
	}
	for _, object := range set.objects() {
		if err := c.get(ctx, object); err == nil {
			return fmt.Errorf("%s %s still exists", object.GetKind(), object.GetName())
		} else if !isGone(err) {
			return err
		}
	}
	return nil
}

func (c *cluster) awaitGone(ctx context.Context, objects []*unstructured.Unstructured) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, c.options.timeout, true, func(ctx context.Context) (bool, error) {
		for _, object := range objects {
			if err := c.get(ctx, object); !isGone(err) {
				return false, client.IgnoreNotFound(err)
			}
		}
		return true, nil
	})
}

func isGone(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// get reads the live object of a manifest.
func (c *cluster) get(ctx context.Context, object *unstructured.Unstructured) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	key := client.ObjectKeyFromObject(object)
	namespaced, err := c.client.IsObjectNamespaced(live)
	if err != nil {
		return err
	}
	if namespaced && key.Namespace == "" {
		key.Namespace = metav1.NamespaceDefault
	}
	return c.client.Get(ctx, key, live)
}
