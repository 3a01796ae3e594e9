package projectactivity

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/projectuse"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// referenced returns the kinds of the objects that bindings refer to.
func referenced() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"), corev1beta1.SchemeGroupVersion.WithKind("InternalSecret"),
		corev1beta1.SchemeGroupVersion.WithKind("Quota"), securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity"),
	}
}

// Controller returns the controller of the last activity in Projects.
func Controller() controller.Controller {
	const purpose = "activity in Projects"
	return controller.Controller{
		Name: "project-activity", Add: add,
		Keeps:   []controller.Keep{controller.Keeping(Keep)},
		Indexes: []controller.Index{projectuse.ByNamespace()},
		Rights: []controller.Right{
			controller.May(purpose, corev1beta1.GroupName, []string{"projects", "shoots", "backupentries"}, controller.Reads()...),
			controller.May(purpose, corev1beta1.GroupName, []string{"projects/status"}, "patch"),
			controller.May(purpose, "", []string{"secrets"}, "list", "watch"),
			controller.May(purpose, corev1beta1.GroupName, []string{"internalsecrets", "quotas"}, "list", "watch"),
			controller.May(purpose, securityv1alpha1.GroupName, []string{"workloadidentities"}, "list", "watch"),
		},
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{client: deps.Client, clock: deps.Clock, latest: map[string]time.Time{}}
	noting := r.noting()
	built, err := controller.Build(mgr, "project-activity", r, deps.Config.Project.ConcurrentSyncs,
		controller.Watch{Object: &corev1beta1.Shoot{}, Handler: noting}, controller.Watch{Object: &corev1beta1.BackupEntry{}, Handler: noting})
	if err != nil {
		return err
	}
	var errs []error
	// Caches select by one label each. They have only metadata of the few objects with it.
	for _, label := range []string{constants.LabelReferenceSecretBinding, constants.LabelReferenceCredentialsBinding} {
		labelled, err := watches.NewCache(mgr, "the objects with the label "+label, cache.Options{
			DefaultLabelSelector: labels.SelectorFromSet(labels.Set{label: "true"}), DefaultTransform: cachetransform.Of(reduce),
		})
		if err != nil {
			return err
		}
		errs = append(errs, mgr.Add(labelled))
		for _, kind := range referenced() {
			errs = append(errs, built.Watch(source.Kind[client.Object](labelled, watches.Metadata(kind), noting)))
		}
	}
	return errors.Join(errs...)
}

// reduce keeps the metadata that decisions depend on.
func reduce(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: cachetransform.Meta(object)}
	kept.CreationTimestamp = object.CreationTimestamp
	return kept
}

// noting returns a handler that notes activities for the Projects of their namespaces.
func (r *reconciler) noting() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	note := func(ctx context.Context, object client.Object, at time.Time, q queue) {
		var found corev1beta1.ProjectList
		if err := r.client.List(ctx, &found, client.MatchingFields{projectuse.Index: object.GetNamespace()}, client.UnsafeDisableDeepCopy); err != nil {
			return // the process ends
		}
		for i := range found.Items {
			r.note(found.Items[i].Name, at)
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: found.Items[i].Name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if at, is := Created(e.Object, r.clock.Now()); is {
				note(ctx, e.Object, at, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if Updated(e.ObjectOld, e.ObjectNew) {
				note(ctx, e.ObjectNew, r.clock.Now(), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { note(ctx, e.Object, r.clock.Now(), q) },
	}
}
