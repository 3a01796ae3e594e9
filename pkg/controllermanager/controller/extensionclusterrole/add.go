package extensionclusterrole

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// name of the controller.
const name = "extension-clusterrole"

// Controller returns the controller of the ClusterRoles of extensions.
func Controller() controller.Controller {
	return controller.Controller{
		Name: name, Add: add,
		// Policies of the chart restrict which ClusterRoles are bound, and to whom.
		Rights: []controller.Right{
			controller.May("ClusterRoles of extensions", rbacv1.GroupName, []string{"clusterroles"}, "get", "list", "watch", "bind"),
			controller.May("rights of extensions", rbacv1.GroupName, []string{"clusterrolebindings"}, "create", "get", "list", "watch", "update", "delete"),
			controller.May("accounts of extensions", "", []string{"serviceaccounts"}, controller.Reads()...),
		},
	}
}

// add adds the controller to the manager of the garden. It has a cache of its own, because that of the manager contains other ClusterRoles
// and bindings.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	marked := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{constants.LabelCustomExtensionsPermissions: "true"})}
	accounts := accountMeta()
	own, err := watches.NewCache(mgr, "the ClusterRoles of extensions", cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&rbacv1.ClusterRole{}: marked, &rbacv1.ClusterRoleBinding{}: marked, accounts: {Transform: reduce},
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{cached: own, garden: deps.Client, recorder: deps.Recorder}
	built, err := controller.Build(mgr, name, r, nil)
	if err != nil {
		return err
	}
	self := &handler.EnqueueRequestForObject{}
	return errors.Join(
		mgr.Add(own),
		built.Watch(source.Kind[client.Object](own, &rbacv1.ClusterRole{}, self, predicate.ResourceVersionChangedPredicate{})),
		built.Watch(source.Kind[client.Object](own, &rbacv1.ClusterRoleBinding{}, self, predicate.ResourceVersionChangedPredicate{})),
		built.Watch(source.Kind[client.Object](own, accounts, handler.EnqueueRequestsFromMapFunc(r.all), eligible())),
	)
}

func accountMeta() *metav1.PartialObjectMetadata {
	accounts := &metav1.PartialObjectMetadata{}
	accounts.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return accounts
}

// reduce keeps the labels of a ServiceAccount.
func reduce(object any) (any, error) {
	account, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil // a tombstone
	}
	kept := accountMeta()
	kept.ObjectMeta = cachetransform.Meta(account)
	kept.Labels = account.Labels
	return kept, nil
}

// eligible passes changes of the labels of ServiceAccounts that belong to extensions.
func eligible() predicate.Predicate {
	of := predicate.NewPredicateFuncs(func(object client.Object) bool { return Eligible(object.GetNamespace(), object.GetName()) })
	return predicate.And(of, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}})
}

// all returns requests for all ClusterRoles of extensions. There are few.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var roles rbacv1.ClusterRoleList
	if err := r.cached.List(ctx, &roles, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not list the ClusterRoles of extensions")
		return nil // the process ends, or the cache has not synced and its watch reports all ClusterRoles once it has
	}
	requests := make([]reconcile.Request, 0, len(roles.Items))
	for i := range roles.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&roles.Items[i])})
	}
	return requests
}
