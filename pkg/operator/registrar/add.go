package registrar

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/virtual"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/rights"
)

// Rights is the entry of the registrar in the table of controllers. AddToManager adds the registrar itself.
func Rights() controller.Controller {
	return controller.Controller{
		Name: "registrar", Add: func(context.Context, controller.Deps) error { return nil },
		Rights: []rights.Right{
			rights.May("whether a Garden exists", operatorv1alpha1.GroupName, []string{"gardens"}, rights.Reads()...),
			rights.May("its kubeconfig for the virtual garden", "", []string{"secrets"}, rights.Reads()...).InNamespace(),
		},
	}
}

// AddToManager adds the controllers that run always, and the registrar.
func (r *Registrar) AddToManager(ctx context.Context) error {
	mgr := r.Deps.Manager
	if err := r.Controllers.Add(ctx, r.Deps, controller.Always); err != nil {
		return err
	}
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), NewInformer: rewatch.NewInformer,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: map[string]cache.Config{r.Deps.Namespace: {
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, virtual.SecretName),
		}}}},
	})
	if err != nil {
		return fmt.Errorf("create a cache of the kubeconfig for the virtual garden: %w", err)
	}
	if err := mgr.Add(secrets); err != nil {
		return fmt.Errorf("add the cache of the kubeconfig for the virtual garden: %w", err)
	}
	r.reader, r.Access.Reader = mgr.GetClient(), secrets
	built, err := runtimecontroller.New("registrar", mgr, runtimecontroller.Options{
		Reconciler: r, MaxConcurrentReconciles: 1, RecoverPanic: ptr.To(true),
		SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation,
	})
	if err != nil {
		return fmt.Errorf("add the registrar: %w", err)
	}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	for _, watched := range []source.Source{
		source.Kind[client.Object](mgr.GetCache(), &operatorv1alpha1.Garden{}, one),
		source.Kind[client.Object](secrets, &corev1.Secret{}, one),
	} {
		if err := built.Watch(watched); err != nil {
			return fmt.Errorf("add a watch of the registrar: %w", err)
		}
	}
	return nil
}
