package reference

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/client-go/util/workqueue"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Controller returns the controllers of references.
func Controller() controller.Controller {
	namespace := cache.ByObject{Namespaces: map[string]cache.Config{constants.GardenNamespace: {}}}
	return controller.Controller{
		Name: "reference", When: controller.Always, Add: add,
		Selects: []controller.Select{
			{Object: watches.MetadataOf(Secret), Options: namespace}, {Object: watches.MetadataOf(ConfigMap), Options: namespace},
		},
		Rights: []rights.Right{
			rights.May("finalizers of objects that refer to others", operatorv1alpha1.GroupName, []string{"gardens", "extensions"},
				append(rights.Reads(), "patch")...),
			rights.May("finalizers of objects that others refer to", "", []string{"secrets", "configmaps"}, append(rights.Reads(), "patch")...).InNamespace(),
		},
	}
}

func add(_ context.Context, deps controller.Deps) error {
	protects := frame.Protector{
		Holder: finalizer.Holder{
			Client: deps.Manager.GetClient(), Uncached: deps.Manager.GetAPIReader(), Owner: controller.FieldManager,
		},
		Recorder: deps.Recorder,
	}
	syncs := deps.Config.Controllers.ExtensionReference.ConcurrentSyncs
	var errs []error
	for _, kind := range []string{Secret, ConfigMap} {
		named := namedBy(kind, deps.Namespace)
		errs = append(errs, frame.Start(deps.Manager, "reference-"+strings.ToLower(kind), &protector{protects, kind}, syncs,
			frame.On(watches.MetadataOf(kind), nil, frame.ChangesFinalizers()),
			frame.On(&operatorv1alpha1.Garden{}, named, changes), frame.On(&operatorv1alpha1.Extension{}, named, changes)))
	}
	for name, empty := range map[string]func() client.Object{
		"garden-reference":    func() client.Object { return &operatorv1alpha1.Garden{} },
		"extension-reference": func() client.Object { return &operatorv1alpha1.Extension{} },
	} {
		errs = append(errs, frame.Start(deps.Manager, name, &user{protects, empty}, syncs, frame.On(empty(), nil, changes)))
	}
	return errors.Join(errs...)
}

// changes passes changes of references and of the finalizers that decide whether they count.
var changes predicate.Predicate = frame.Changes(func(before, after client.Object) bool {
	return !slices.Equal(Of(before), Of(after)) || !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
})

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// namedBy enqueues the objects of a kind that an object refers to, also those that it referred to before a change.
func namedBy(kind, namespace string) handler.EventHandler {
	enqueue := func(q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, reference := range Of(object) {
				if reference.Kind == kind {
					q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: reference.Name}})
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object) },
	}
}
