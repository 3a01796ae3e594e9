package extension

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart/registry"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/reference"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// PullFunc pulls a chart. credentials and authority are Secrets for the registry, nil for none.
type PullFunc func(ctx context.Context, from *gardencorev1.OCIRepository, credentials, authority *corev1.Secret) ([]byte, error)

// Controller returns the controller that installs Extensions.
func Controller() controller.Controller { return WithPull(registry.New().Pull) }

// WithPull is Controller with another source of charts.
func WithPull(pull PullFunc) controller.Controller {
	return controller.Controller{
		Name: "extension", When: controller.Always, Add: func(_ context.Context, deps controller.Deps) error { return add(deps, pull) },
		Rights: []rights.Right{
			rights.May("installation of Extensions", operatorv1alpha1.GroupName, []string{"extensions"}, append(rights.Reads(), "patch")...),
			rights.May("the condition Installed", operatorv1alpha1.GroupName, []string{"extensions/status"}, "patch"),
			rights.May("whether there is a Garden", operatorv1alpha1.GroupName, []string{"gardens"}, rights.Reads()...),
			rights.May("what extensions consist of", resourcesv1alpha1.GroupName, []string{"managedresources"},
				append(rights.Reads(), "create", "patch", "delete")...),
			rights.May("manifests, and credentials of registries", "", []string{"secrets"}, append(rights.Reads(), "create", "patch", "delete")...).InNamespace(),
			rights.May("values of charts", "", []string{"configmaps"}, rights.Reads()...).InNamespace(),
		},
	}
}

func add(deps controller.Deps, pull PullFunc) error {
	mgr := deps.Manager
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: deps.Namespace, clock: deps.Clock, pull: pull,
		holder: finalizer.Holder{Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Owner: controller.FieldManager},
		emitter: &flow.Emitter{
			Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Writer: mgr.GetClient(), FieldManager: string(controller.FieldManager), Clock: deps.Clock,
			Rules: flow.Rules{Scheme: scheme(), Protected: flow.DefaultProtected(), Version: deps.Version},
		},
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.all(ctx, func(*operatorv1alpha1.Extension) bool { return true })
	})
	own := flow.EmittedBy(FlowName)
	watched := []frame.Watch{
		frame.On(&operatorv1alpha1.Extension{}, nil, frame.Changes(func(before, after *operatorv1alpha1.Extension) bool {
			return before.Generation != after.Generation || !slices.Equal(before.Finalizers, after.Finalizers) ||
				isTrue(before, operatorv1alpha1.ExtensionRequiredRuntime) != isTrue(after, operatorv1alpha1.ExtensionRequiredRuntime) ||
				!equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
		})),
		frame.On(&operatorv1alpha1.Garden{}, all, frame.Changes(func(before, after *operatorv1alpha1.Garden) bool {
			const kubeconfig = constants.AnnotationGenericTokenKubeconfigSecretName
			return isUp(before) != isUp(after) || before.Annotations[kubeconfig] != after.Annotations[kubeconfig] ||
				!slices.Equal(before.Spec.RuntimeCluster.Provider.Zones, after.Spec.RuntimeCluster.Provider.Zones)
		})),
		frame.On(&resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), own),
	}
	for _, kind := range []string{reference.Secret, reference.ConfigMap} {
		named := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			return r.all(ctx, func(extension *operatorv1alpha1.Extension) bool {
				return slices.Contains(reference.Of(extension), reference.Reference{Kind: kind, Name: object.GetName()})
			})
		})
		watched = append(watched, frame.On(watches.MetadataOf(kind), named, hasRole()))
	}
	watched = append(watched, frame.On(watches.MetadataOf(reference.Secret), flow.ToOwner(), own))
	return frame.Start(mgr, "extension", r, deps.Config.Controllers.Extension.ConcurrentSyncs, watched...)
}

// scheme has the kinds of the objects that are registered in the virtual garden, and of their namespaces and Secrets.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(served.AddToScheme(s))
	return s
}

// hasRole passes objects to which Extensions may refer.
func hasRole() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		return slices.Contains([]string{constants.RoleHelmPullSecret, constants.RoleOCICABundle, constants.RoleResourceReference},
			object.GetLabels()[constants.LabelGardenRole])
	})
}

// all returns requests for the selected Extensions.
func (r *reconciler) all(ctx context.Context, selected func(*operatorv1alpha1.Extension) bool) []reconcile.Request {
	list := &operatorv1alpha1.ExtensionList{}
	if err := r.client.List(ctx, list); err != nil {
		return nil // the process ends, or the watch of Extensions reports all once the cache is filled
	}
	var names []string
	for i := range list.Items {
		if selected(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	return frame.Requests(names...)
}
