package project

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/projectuse"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Controller returns the controller of Projects.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "project", Add: add,
		Keeps:   []controller.Keep{controller.Keeping(projectuse.Keep)},
		Indexes: []controller.Index{projectuse.ByNamespace()},
		Selects: []controller.Select{
			{Object: &rbacv1.ClusterRole{}, Options: controller.Labelled(constants.RoleProject, constants.RoleExtensionProject)},
			{Object: &rbacv1.ClusterRoleBinding{}, Options: controller.Labelled(constants.RoleProject)},
			{Object: &corev1.ResourceQuota{}, Options: cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", quotaName)}},
		},
		Rights: rights(),
	}
}

// rights returns the rights of the controller. The verbs bind and escalate let it grant rights that it does not have itself. The
// policies of the chart restrict what it grants.
func rights() []controller.Right {
	const members = "rights of members"
	return append(projectuse.Rights(),
		controller.May("finalizers and spec.namespace", corev1beta1.GroupName, []string{projects}, "get", "list", "watch", "patch"),
		controller.May("phases", corev1beta1.GroupName, []string{"projects/status"}, "patch"),
		controller.May("namespaces of Projects", "", []string{"namespaces"}, "create", "get", "list", "watch", "patch", "delete"),
		controller.May("quotas of Projects", "", []string{"resourcequotas"}, "create", "get", "list", "watch", "update"),
		controller.May(members, rbacv1.GroupName, []string{"clusterroles"},
			"bind", "create", "delete", "escalate", "get", "list", "update", "watch"),
		controller.May(members, rbacv1.GroupName, []string{"clusterrolebindings", "rolebindings"},
			"create", "delete", "get", "list", "update", "watch"),
	)
}

// add adds the controller to the manager of the garden. It watches everything that it writes, so that changes by others are reverted.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{client: deps.Client, live: deps.Live, recorder: deps.Recorder, quotas: deps.Config.Project.Quotas}
	toProject := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if name := object.GetLabels()[constants.LabelProjectName]; name != "" {
			return controller.Requests(name)
		}
		return nil
	})
	toClaimants := handler.EnqueueRequestsFromMapFunc(r.claimants)
	version := predicate.ResourceVersionChangedPredicate{}
	return controller.Start(mgr, "project", r, deps.Config.Project.ConcurrentSyncs,
		controller.Watch{Object: &corev1beta1.Project{}, Changed: controller.Changes(func(before, after *corev1beta1.Project) bool {
			return before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels)
		})},
		controller.Watch{Object: watches.MetadataOf("Namespace"), Handler: toClaimants, Changed: version},
		controller.Watch{Object: &rbacv1.ClusterRole{}, Handler: toProject, Changed: version},
		controller.Watch{Object: &rbacv1.ClusterRoleBinding{}, Handler: toProject, Changed: version},
		controller.Watch{Object: &rbacv1.RoleBinding{}, Handler: toProject, Changed: version},
		controller.Watch{Object: &corev1.ResourceQuota{}, Handler: toClaimants, Changed: controller.Changes(func(before, after *corev1.ResourceQuota) bool {
			return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Annotations, after.Annotations) ||
				!maps.Equal(before.Labels, after.Labels)
		})},
		controller.Watch{Object: &corev1beta1.Shoot{}, Handler: toClaimants, Changed: controller.Deletions()},
	)
}

// claimants returns requests for the Projects whose namespace is that of an object, or the object itself.
func (r *reconciler) claimants(ctx context.Context, object client.Object) []reconcile.Request {
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = object.GetName()
	}
	var found corev1beta1.ProjectList
	if err := r.client.List(ctx, &found, client.MatchingFields{projectuse.Index: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all Projects once it has
	}
	var names []string
	for i := range found.Items {
		names = append(names, found.Items[i].Name)
	}
	return controller.Requests(names...)
}
