package bastion

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// AddToManager adds the controller. The cache contains the objects of the seed that flows have emitted.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, seed *backup.Seed, config *gardenletv1alpha1.Concurrency) error {
	workers := 1
	if config != nil {
		workers = ptr.Deref(config.ConcurrentSyncs, workers)
	}
	r := &Reconciler{Seed: seed, Live: of}
	built, err := watches.Controller{Name: "bastion", Reconciler: r, Workers: workers}.AddTo(mgr,
		watches.Self(garden.GetCache(), &operationsv1alpha1.Bastion{}, backup.Declared()),
		watches.Mapped(garden.GetCache(), &corev1beta1.Shoot{}, r.ofShoot, shootChanged()),
		watches.Kind(of, &resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), flow.EmittedBy(FlowName)),
	)
	if err != nil {
		return err
	}
	return backup.WatchWhenDefined(mgr, of, built, "bastions.extensions.gardener.cloud", &extensionsv1alpha1.Bastion{}, flow.ToOwner())
}

// ofShoot maps a Shoot to its Bastions.
func (r *Reconciler) ofShoot(ctx context.Context, shoot client.Object) []reconcile.Request {
	var all operationsv1alpha1.BastionList
	if err := r.Garden.List(ctx, &all, client.InNamespace(shoot.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the Bastions read their Shoot when they are reconciled
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if all.Items[i].Spec.ShootRef.Name == shoot.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// shootChanged passes the changes of a Shoot on which Bastions depend: its creation and deletion, and its first technical ID.
func shootChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1beta1.Shoot)
		after, same := e.ObjectNew.(*corev1beta1.Shoot)
		return !ok || !same || before.Status.TechnicalID != after.Status.TechnicalID ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	}}
}
