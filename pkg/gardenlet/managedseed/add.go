package managedseed

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// changesBuffer is how many changes of objects of the garden can be pending. What is dropped is read when the ManagedSeed is reconciled again.
const changesBuffer = 64

// AddToManager adds the controller to the manager of the seed. The cache of the garden has the ManagedSeeds, Shoots and Seeds with the label of
// the Seed; direct reads from the API server of the garden.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, direct client.Client, o Options) error {
	seed, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("set up the connection of the controller of ManagedSeeds to the seed: %w", err)
	}
	r := &reconciler{
		Options: o, garden: garden.GetClient(), direct: direct, objects: gardenobjects.New(garden), seed: seed, issuer: newIssuer(o, direct),
		emitter: &flow.Emitter{
			Reader: seed, Uncached: seed, Writer: seed, FieldManager: string(fieldManager),
			Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: o.Version},
		},
	}
	emitted, err := flow.OwnCache(mgr, FlowName)
	if err != nil {
		return err
	}
	return errors.Join(mgr.Add(emitted), mgr.Add(r.objects), r.watch(mgr, garden, emitted))
}

// watch adds the controller with watches of all objects that it reads.
func (r *reconciler) watch(mgr manager.Manager, garden cluster.Cluster, emitted cache.Cache) error {
	changes := watches.NewNotifier(changesBuffer)
	r.objects.OnChange(changes.Notify)
	named := func(_ context.Context, seed client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.GetName()}}}
	}
	workers := ptr.Deref(r.Config.Controllers.ManagedSeed.ConcurrentSyncs, 1)
	_, err := watches.Controller{Name: "managedseed", Reconciler: r, Workers: workers}.AddTo(mgr,
		watches.Self(garden.GetCache(), &v1alpha1.ManagedSeed{}, flow.DeclarationChanged()),
		watches.Mapped(garden.GetCache(), &corev1beta1.Shoot{}, r.ofShoot, shootChanged()),
		watches.Mapped(garden.GetCache(), &corev1beta1.Seed{}, named, seedChanged(r.SeedName)),
		watches.Kind(emitted, &resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), flow.EmittedBy(FlowName)),
		changes.Source(r.all),
	)
	return err
}

// ofShoot returns requests for the ManagedSeeds of a Shoot.
func (r *reconciler) ofShoot(ctx context.Context, shoot client.Object) []reconcile.Request {
	return r.selected(ctx, func(managed *v1alpha1.ManagedSeed) bool {
		return managed.Namespace == shoot.GetNamespace() && managed.Spec.Shoot != nil && managed.Spec.Shoot.Name == shoot.GetName()
	})
}

// all returns requests for all ManagedSeeds.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.selected(ctx, func(*v1alpha1.ManagedSeed) bool { return true })
}

func (r *reconciler) selected(ctx context.Context, selected func(*v1alpha1.ManagedSeed) bool) []reconcile.Request {
	list := &v1alpha1.ManagedSeedList{}
	if err := r.garden.List(ctx, list); err != nil {
		return nil // the process ends, or the watch of ManagedSeeds reports all once the cache is filled
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if selected(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// shootChanged passes changes that decide whether a Shoot is reconciled, and those of its domain.
func shootChanged() predicate.Predicate {
	return frame.Changes(func(before, after *corev1beta1.Shoot) bool {
		return before.Generation != after.Generation || before.Status.TechnicalID != after.Status.TechnicalID ||
			shootReconciled(before, before.Name) != shootReconciled(after, after.Name)
	})
}

// seedChanged passes other Seeds: their registration, the expiry of their certificates, and their deletion.
func seedChanged(own string) predicate.Predicate {
	other := predicate.NewPredicateFuncs(func(seed client.Object) bool { return seed.GetName() != own })
	return predicate.And(other, predicate.Or[client.Object](frame.Deletions(), frame.Changes(func(before, after *corev1beta1.Seed) bool {
		return !before.Status.ClientCertificateExpirationTimestamp.Equal(after.Status.ClientCertificateExpirationTimestamp)
	})))
}
