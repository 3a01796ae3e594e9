package seed

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// name of the controller.
const name = "seed-secrets"

// Controller returns the controller of the namespaces of Seeds.
func Controller() controller.Controller {
	return controller.Controller{
		Name: name, Add: add,
		Rights: []controller.Right{
			controller.May("copies of Secrets with a role", "", []string{"secrets"}, "create", "get", "list", "watch", "update", "delete"),
			controller.May("namespaces of Seeds", "", []string{"namespaces"}, "create", "get", "list", "watch", "patch"),
			controller.May("namespaces of Seeds", corev1beta1.GroupName, []string{"seeds"}, controller.Reads()...),
		},
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	// A separate cache, because that of the manager has only the metadata of Secrets.
	secrets, err := watches.NewCache(mgr, "the Secrets with a role", cache.Options{
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: copied(), Transform: reduce}},
	})
	if err != nil {
		return err
	}
	r := &reconciler{secrets: secrets, garden: deps.Client, recorder: deps.Recorder}
	isOfSeed := predicate.NewPredicateFuncs(func(object client.Object) bool { return ofSeed(object.GetName()) })
	built, err := controller.Build(mgr, name, r, deps.Config.Seed.ConcurrentSyncs,
		controller.On(&corev1beta1.Seed{}, nil, controller.Changes(func(_, _ *corev1beta1.Seed) bool { return false })),
		controller.On(watches.MetadataOf("Namespace"), handler.EnqueueRequestsFromMapFunc(ofNamespace), isOfSeed))
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(secrets),
		built.Watch(source.Kind[client.Object](secrets, &corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.affected), predicate.ResourceVersionChangedPredicate{})),
	)
}
