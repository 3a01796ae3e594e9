package registrar

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/virtual"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/watches"
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
	secrets, err := watches.NewCache(mgr, "the kubeconfig for the virtual garden", cache.Options{
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: map[string]cache.Config{r.Deps.Namespace: {
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, virtual.SecretName),
		}}}},
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(secrets); err != nil {
		return fmt.Errorf("add the cache of the kubeconfig for the virtual garden: %w", err)
	}
	r.reader, r.Access.Reader = mgr.GetClient(), secrets
	one := watches.To(reconcile.Request{})
	_, err = watches.Controller{Name: "registrar", Reconciler: r, Workers: 1}.AddTo(mgr,
		watches.Mapped(mgr.GetCache(), &operatorv1alpha1.Garden{}, one),
		watches.Mapped(secrets, &corev1.Secret{}, one),
	)
	return err
}
