package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
)

const (
	// again is how long a deployed gardenlet has to register its Seed until it is looked at again.
	again = 30 * time.Second
	// remoteTimeout limits each request to another cluster.
	remoteTimeout = 15 * time.Second
)

// reconciler deploys gardenlets.
type reconciler struct {
	// gardens reads Gardens of the runtime cluster from a cache.
	gardens client.Reader
	// runtime reads from the API server of the runtime cluster, and writes to it.
	runtime client.Client
	config  *rest.Config
	emitter *flow.Emitter
	// virtual reads from the cache of the virtual garden, and direct from its API server.
	virtual, direct client.Client
	issuer          gardenletdeployer.Issuer
	puller          gardenletdeployer.Puller
	// image is the image of gardenlets, and chart the reference of their chart that Gardenlets follow; empty for none.
	image, chart string
	namespace    string
	scheme       *runtime.Scheme
	clock        clock.PassiveClock
}

// Reconcile deploys the gardenlet of one Gardenlet, or leaves it to itself. If the Gardenlet is deleted, nothing happens.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	gardenlet := &v1alpha1.Gardenlet{}
	if err := r.virtual.Get(ctx, request.NamespacedName, gardenlet); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.direct.Get(ctx, client.ObjectKey{Name: gardenlet.Name}, &corev1beta1.Seed{})
	// What is not known counts as a Seed: a second gardenlet would be worse than a late one.
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %s: %w", gardenlet.Name, err)
	}
	if err := r.follow(ctx, gardenlet); err != nil {
		return reconcile.Result{}, err
	}
	var found finding
	var result reconcile.Result
	switch decide(gardenlet, err == nil) {
	case ignore:
		return reconcile.Result{}, nil
	case leave:
		found, err = r.leave(ctx, gardenlet)
	case deploy:
		found, err = r.deploy(ctx, gardenlet)
		result.RequeueAfter = again
	}
	if err != nil {
		found, result = failed(err), reconcile.Result{}
	}
	return result, errors.Join(err, r.report(ctx, gardenlet, found))
}

// leave deletes what the first deployment needed: the kubeconfig of the cluster, and the ManagedResource in the runtime cluster.
func (r *reconciler) leave(ctx context.Context, gardenlet *v1alpha1.Gardenlet) (finding, error) {
	if _, err := r.emitter.Emit(ctx, ownerOf(gardenlet), givingUp(r.namespace, gardenlet)); err != nil {
		return finding{}, err
	}
	if ref := gardenlet.Spec.KubeconfigSecretRef; ref != nil {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = gardenlet.Namespace, ref.Name
		if err := client.IgnoreNotFound(r.direct.Delete(ctx, secret)); err != nil {
			return finding{}, fmt.Errorf("delete the kubeconfig of the cluster of Seed %s: %w", gardenlet.Name, err)
		}
		if err := r.patch(ctx, gardenlet, func() { gardenlet.Spec.KubeconfigSecretRef = nil }); err != nil {
			return finding{}, err
		}
	}
	return finding{corev1beta1.ConditionTrue, reasonReconciled, "The Seed is registered: the gardenlet upgrades itself."}, nil
}

// deploy deploys a gardenlet into its cluster.
func (r *reconciler) deploy(ctx context.Context, gardenlet *v1alpha1.Gardenlet) (finding, error) {
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.gardens.List(ctx, gardens); err != nil {
		return finding{}, fmt.Errorf("list the Gardens: %w", err)
	}
	chart, err := r.puller.Chart(ctx, gardenlet)
	if err != nil {
		return finding{}, fmt.Errorf("pull the chart of the gardenlet: %w", err)
	}
	in := gardenletdeployer.InputsOf(gardenlet)
	in.Image, in.GardenAddress = r.image, addressOf(gardens.Items)
	remote := gardenlet.Spec.KubeconfigSecretRef != nil
	if !remote {
		in.PodLabels = map[string]string{labelToVirtual: "allowed"}
	}
	target, kubeVersion, err := r.targetOf(ctx, gardenlet)
	if err != nil {
		return finding{}, err
	}
	objects, err := in.Objects(ctx, chart, kubeVersion)
	if err != nil {
		return finding{}, err
	}
	if err := target.Owner(ctx, gardenlet.Name); err != nil {
		return finding{}, err
	}
	if remote {
		once := append([]client.Object{gardenletdeployer.Namespace(in.Namespace)}, objects.Once...)
		if err := target.Create(ctx, once); err != nil {
			return finding{}, err
		}
	}
	if in.GardenAddress == "" {
		return finding{}, errors.New("the Garden has no spec.virtualCluster.dns.domains, which gardenlets need to reach it")
	}
	step, err := r.ensure(ctx, gardenlet, target, in.GardenAddress)
	if err != nil {
		return finding{}, err
	}
	if remote {
		err = target.Apply(ctx, objects.Managed)
	} else {
		_, err = r.emitter.Emit(ctx, ownerOf(gardenlet), planFor(r.namespace, gardenlet, objects.Managed))
	}
	if err != nil {
		return finding{}, err
	}
	if forced(gardenlet) {
		if err := r.annotate(gardenlet)(ctx, map[string]string{constants.AnnotationGardenerOperation: ""}); err != nil {
			return finding{}, err
		}
	}
	return deployed(gardenlet, step), nil
}

// targetOf returns the cluster of a gardenlet, and its version of Kubernetes.
func (r *reconciler) targetOf(ctx context.Context, gardenlet *v1alpha1.Gardenlet) (gardenletdeployer.Target, string, error) {
	target := gardenletdeployer.Target{Client: r.runtime, Namespace: constants.GardenNamespace, FieldManager: controller.FieldManager}
	config := r.config
	if gardenlet.Spec.KubeconfigSecretRef != nil {
		var err error
		if config, target.Client, err = r.connect(ctx, gardenlet); err != nil {
			return target, "", err
		}
	}
	version, err := versionOf(config)
	return target, version, err
}

// labelToVirtual lets Pods of the runtime cluster reach the API server of the virtual garden.
const labelToVirtual = "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"

// ensure gives the gardenlet its first credentials.
func (r *reconciler) ensure(
	ctx context.Context, gardenlet *v1alpha1.Gardenlet, target gardenletdeployer.Target, address string,
) (gardenletdeployer.Step, error) {
	issuer := r.issuer
	issuer.Cluster.Server = address
	annotations := gardenletdeployer.Annotated(gardenlet.Annotations, nil)
	if forced(gardenlet) {
		delete(annotations, constants.AnnotationGardenerOperation)
	}
	return gardenletdeployer.Ensure(ctx, gardenletdeployer.Object{
		Kind: gardenletdeployer.Gardenlet, Namespace: gardenlet.Namespace, Name: gardenlet.Name, Annotations: annotations,
		Bootstrap: v1alpha1.BootstrapToken,
	}, true, issuer, target, r.annotate(gardenlet))
}

// connect returns a client of the cluster of a gardenlet. Its kubeconfig may not run programs or read files of this process.
func (r *reconciler) connect(ctx context.Context, gardenlet *v1alpha1.Gardenlet) (*rest.Config, client.Client, error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: gardenlet.Namespace, Name: gardenlet.Spec.KubeconfigSecretRef.Name}
	err := r.direct.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("secret %s, to which spec.kubeconfigSecretRef refers, does not exist: create it", key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig of the cluster of Seed %s: %w", gardenlet.Name, err)
	}
	content := secret.Data[gardenletdeployer.KeyKubeconfig]
	if err := kubeconfig.CheckInline(content); err != nil {
		return nil, nil, fmt.Errorf("the key %s of Secret %s: %w", gardenletdeployer.KeyKubeconfig, key, err)
	}
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return nil, nil, fmt.Errorf("the key %s of Secret %s: %w", gardenletdeployer.KeyKubeconfig, key, err)
	}
	config.Timeout = remoteTimeout
	connected, err := client.New(config, client.Options{Scheme: r.scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("access the cluster of Seed %s: %w", gardenlet.Name, err)
	}
	return config, connected, nil
}

// versionOf returns the version of Kubernetes of a cluster.
func versionOf(config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	config.Timeout = remoteTimeout
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("set up the connection to the cluster of the gardenlet: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("read the version of the cluster of the gardenlet: %w", err)
	}
	return version.GitVersion, nil
}

// follow raises the chart of a Gardenlet to that of the operator.
func (r *reconciler) follow(ctx context.Context, gardenlet *v1alpha1.Gardenlet) error {
	chart := followed(gardenlet, r.chart)
	if chart == "" {
		return nil
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.gardens.List(ctx, gardens); err != nil {
		return fmt.Errorf("list the Gardens: %w", err)
	}
	for i := range gardens.Items {
		if !isReconciled(&gardens.Items[i]) {
			return nil // a gardenlet must not be newer than the API of the garden
		}
	}
	return r.patch(ctx, gardenlet, func() {
		from := &gardenlet.Spec.Deployment.Helm.OCIRepository
		from.Ref, from.Repository, from.Tag, from.Digest = ptr.To(chart), nil, nil, nil
	})
}

// isReconciled reports whether the current generation of a Garden is reconciled.
func isReconciled(garden *operatorv1alpha1.Garden) bool {
	last := garden.Status.LastOperation
	return garden.DeletionTimestamp == nil && garden.Status.ObservedGeneration == garden.Generation && last != nil &&
		last.Type != corev1beta1.LastOperationTypeDelete && last.State == corev1beta1.LastOperationStateSucceeded
}

// annotate changes annotations of a Gardenlet. An empty value removes one.
func (r *reconciler) annotate(gardenlet *v1alpha1.Gardenlet) func(context.Context, map[string]string) error {
	return func(ctx context.Context, values map[string]string) error {
		return r.patch(ctx, gardenlet, func() { gardenlet.Annotations = gardenletdeployer.Annotated(gardenlet.Annotations, values) })
	}
}

// patch changes a Gardenlet, unless it has changed since it was read.
func (r *reconciler) patch(ctx context.Context, gardenlet *v1alpha1.Gardenlet, change func()) error {
	before := client.MergeFromWithOptions(gardenlet.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.direct.Patch(ctx, gardenlet, before, controller.FieldManager); err != nil {
		return fmt.Errorf("change Gardenlet %s: %w", gardenlet.Name, err)
	}
	return nil
}

// report writes the condition if it has changed.
func (r *reconciler) report(ctx context.Context, gardenlet *v1alpha1.Gardenlet, found finding) error {
	condition := corev1beta1.Condition{Type: v1alpha1.SeedRegistered, Status: found.status, Reason: found.reason, Message: found.message}
	before := corev1beta1.FindCondition(gardenlet.Status.Conditions, condition.Type)
	status := gardenlet.Status.DeepCopy()
	status.Conditions = corev1beta1.SetCondition(status.Conditions, corev1beta1.KeepTimes(before, condition, r.clock.Now()))
	if equality.Semantic.DeepEqual(*status, gardenlet.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(gardenlet.DeepCopy(), client.MergeFromWithOptimisticLock{}) // gardenlet writes another condition
	gardenlet.Status = *status
	if err := client.IgnoreNotFound(r.direct.Status().Patch(ctx, gardenlet, patch, controller.FieldManager)); err != nil {
		return fmt.Errorf("write the status of Gardenlet %s: %w", gardenlet.Name, err)
	}
	return nil
}
