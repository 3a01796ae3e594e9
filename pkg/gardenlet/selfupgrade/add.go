package selfupgrade

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/helmchart/registry"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// changesBuffer is how many changes of Secrets of the garden can be pending. What is dropped is read when the Gardenlet is reconciled again.
const changesBuffer = 16

func userOf(seed string) gardenobjects.User {
	return gardenobjects.User{Kind: "Gardenlet", ObjectKey: client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed}}
}

// AddToManager adds the controller to the manager of the seed. The cache of the garden has the Gardenlet with the name of the Seed, and the Seed.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, o Options) error {
	seed, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("set up the connection of the controller of Gardenlets to the seed: %w", err)
	}
	if o.Pull == nil {
		o.Pull = registry.New().Pull
	}
	objects := gardenobjects.New(garden)
	r := &reconciler{
		Options: o, garden: garden.GetClient(), objects: objects, seed: seed,
		emitter: &flow.Emitter{
			Reader: seed, Uncached: seed, Writer: seed, FieldManager: string(fieldManager),
			Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: o.Version},
		},
		puller: gardenletdeployer.Puller{
			Pull: o.Pull,
			Secret: func(ctx context.Context, name string) (*corev1.Secret, error) {
				secret := &corev1.Secret{}
				return secret, objects.Get(ctx, userOf(o.SeedName), client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, secret)
			},
		},
	}
	emitted, err := flow.OwnCache(mgr, FlowName, constants.GardenNamespace)
	if err != nil {
		return err
	}
	return errors.Join(mgr.Add(emitted), mgr.Add(objects), r.watch(mgr, garden, emitted))
}

// watch adds the controller with watches of all objects that it reads.
func (r *reconciler) watch(mgr manager.Manager, garden cluster.Cluster, emitted cache.Cache) error {
	changes := watches.NewNotifier(changesBuffer)
	r.objects.OnChange(changes.Notify)
	own := watches.To(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: r.SeedName}})
	ofSeed := predicate.And(
		predicate.NewPredicateFuncs(func(seed client.Object) bool { return seed.GetName() == r.SeedName }),
		frame.Changes(func(before, after *corev1beta1.Seed) bool {
			return !before.Status.ClientCertificateExpirationTimestamp.Equal(after.Status.ClientCertificateExpirationTimestamp)
		}))
	_, err := watches.Controller{Name: "gardenlet", Reconciler: r}.AddTo(mgr,
		watches.Self(garden.GetCache(), &v1alpha1.Gardenlet{}, flow.DeclarationChanged()),
		watches.Mapped(garden.GetCache(), &corev1beta1.Seed{}, own, ofSeed),
		watches.Mapped(emitted, &resourcesv1alpha1.ManagedResource{}, own, flow.EmittedBy(FlowName)),
		changes.Source(own),
	)
	return err
}
