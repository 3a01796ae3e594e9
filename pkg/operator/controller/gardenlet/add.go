package gardenlet

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/helmchart/registry"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// imageName and chartName are the names of the image and of the chart of gardenlet in the list of images. The list has no chart unless an
// operator adds it.
const imageName, chartName = "gardenlet", "gardenlet-chart"

// PullFunc pulls a chart.
type PullFunc func(ctx context.Context, from *gardencorev1.OCIRepository, credentials, authority *corev1.Secret) ([]byte, error)

// Controller returns the controller of Gardenlets.
func Controller() controller.Controller { return WithPull(registry.New().Pull) }

// WithPull is Controller with another source of charts.
func WithPull(pull PullFunc) controller.Controller {
	return controller.Controller{
		Name: "gardenlet", When: controller.WithVirtual,
		Add: func(_ context.Context, deps controller.Deps) error { return add(deps, pull) },
		Rights: []rights.Right{
			rights.May("the address of the virtual garden", operatorv1alpha1.GroupName, []string{"gardens"}, rights.Reads()...),
			rights.May("gardenlets of the runtime cluster", resourcesv1alpha1.GroupName, []string{"managedresources"}, append(rights.Reads(), "create", "patch", "delete")...),
			rights.May("manifests, and credentials of gardenlets", "", []string{"secrets"}, append(rights.Reads(), "create", "patch", "delete")...).InNamespace(),
			rights.May("which Seed a gardenlet belongs to", "", []string{"configmaps"}, "get").InNamespace(),
			rights.May("which Seed a gardenlet belongs to", "apps", []string{"deployments"}, "get").InNamespace(),
		},
	}
}

func add(deps controller.Deps, pull PullFunc) error {
	mgr, virtual := deps.Manager, deps.Virtual
	direct, err := uncached(virtual.GetConfig(), virtual.GetScheme())
	if err != nil {
		return fmt.Errorf("set up the connection to the virtual garden: %w", err)
	}
	own, err := uncached(mgr.GetConfig(), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("set up the connection to the runtime cluster: %w", err)
	}
	vector, err := images.FromEnvironment()
	if err != nil {
		return err
	}
	image, err := vector.Find(imageName, images.Options{})
	if err != nil {
		return err
	}
	r := &reconciler{
		gardens: mgr.GetClient(), runtime: own, config: mgr.GetConfig(), virtual: virtual.GetClient(), direct: direct, namespace: deps.Namespace, scheme: mgr.GetScheme(),
		clock: deps.Clock, image: gardenletdeployer.Reference(image.Reference, deps.Version),
		emitter: &flow.Emitter{
			Reader: own, Uncached: own, Writer: own, FieldManager: string(controller.FieldManager),
			Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: deps.Version},
		},
		puller: gardenletdeployer.Puller{Pull: pull, Secret: func(ctx context.Context, name string) (*corev1.Secret, error) {
			secret := &corev1.Secret{}
			return secret, direct.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, secret)
		}},
	}
	if chart, err := vector.Find(chartName, images.Options{}); err == nil {
		r.chart = gardenletdeployer.Reference(chart.Reference, deps.Version)
	}
	r.issuer = gardenletdeployer.Issuer{
		Garden: direct, FieldManager: controller.FieldManager, Random: rand.Reader, Clock: deps.Clock,
		Cluster: clientcmdapi.Cluster{CertificateAuthorityData: virtual.GetConfig().CAData},
	}
	return r.watch(deps)
}

// uncached returns a client that reads from the API server.
func uncached(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	return client.New(config, client.Options{Scheme: scheme})
}

// watch adds the controller with watches of all objects that it reads.
func (r *reconciler) watch(deps controller.Deps) error {
	mgr, virtual := deps.Manager, deps.Virtual
	named := func(_ context.Context, seed client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.GetName()}}}
	}
	workers := ptr.Deref(deps.Config.Controllers.GardenletDeployer.ConcurrentSyncs, 1)
	_, err := watches.Controller{Name: "gardenlet", Reconciler: r, Workers: workers}.AddTo(mgr,
		watches.Self(virtual.GetCache(), &v1alpha1.Gardenlet{}, flow.DeclarationChanged()),
		watches.Mapped(virtual.GetCache(), &corev1beta1.Seed{}, named, frame.Changes(func(_, _ *corev1beta1.Seed) bool { return false })),
		watches.Mapped(mgr.GetCache(), &operatorv1alpha1.Garden{}, r.all,
			frame.Changes(func(before, after *operatorv1alpha1.Garden) bool { return isReconciled(before) != isReconciled(after) })),
	)
	return err
}

// all returns requests for all Gardenlets.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &v1alpha1.GardenletList{}
	if err := r.virtual.List(ctx, list); err != nil {
		return nil // the process ends, or the watch of Gardenlets reports all once the cache is filled
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
