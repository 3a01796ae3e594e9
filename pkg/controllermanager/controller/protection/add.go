package protection

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Controller returns the controllers that keep objects in use.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "protection", Add: add,
		Keeps: []controller.Keep{
			controller.Keeping(keep), controller.Whole[corev1beta1.CloudProfile](), controller.Whole[corev1beta1.NamespacedCloudProfile](),
			controller.Whole[corev1beta1.ExposureClass](), controller.Whole[corev1beta1.Quota](), controller.Whole[corev1beta1.SecretBinding](),
			controller.Whole[securityv1alpha1.CredentialsBinding](),
		},
		Rights: []controller.Right{
			controller.May("finalizers of objects that Shoots or bindings use", corev1beta1.GroupName,
				[]string{"cloudprofiles", "namespacedcloudprofiles", "exposureclasses", "quotas", "secretbindings"}, "get", "list", "watch", "patch"),
			controller.May("finalizers of objects that Shoots use", securityv1alpha1.GroupName, []string{"credentialsbindings"}, "get", "list", "watch", "patch"),
			controller.May("finalizers of extensions", corev1beta1.GroupName, []string{"controllerdeployments", "controllerregistrations"}, "get", "list", "watch", "patch"),
			controller.May("users of protected objects", corev1beta1.GroupName, []string{"shoots", "controllerinstallations"}, controller.Reads()...),
		},
	}
}

// add adds a controller for each row of the table.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	var errs []error
	for _, row := range table() {
		watches := []controller.Watch{controller.On(row.object, &handler.EnqueueRequestForObject{}, controller.ChangesFinalizers())}
		for _, user := range row.users {
			watches = append(watches, controller.On(user.object, user.handler(), user.releases()))
		}
		r := &reconciler{Protector: deps.Protector(), row: row}
		errs = append(errs, controller.Start(mgr, row.controller, r, row.configuration(deps.Config).ConcurrentSyncs, watches...))
	}
	return errors.Join(errs...)
}

// handler returns requests for the objects to which an object refers, or referred before a change.
func (u user) handler() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		var found []reconcile.Request
		for _, name := range u.refers(object) {
			found = append(found, reconcile.Request{NamespacedName: name})
		}
		return found
	})
}

// releases passes deletions and changes of references, after which an object may not be in use any more.
func (u user) releases() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !slices.Equal(u.refers(e.ObjectOld), u.refers(e.ObjectNew)) },
	}
}
