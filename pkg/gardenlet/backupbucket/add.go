package backupbucket

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// AddToManager adds the controller. The cache contains the objects of the seed that flows have emitted.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, seed *backup.Seed, workers int) error {
	r := &Reconciler{Seed: seed, Live: of}
	built, err := watches.Controller{Name: "backupbucket", Reconciler: r, Workers: workers}.AddTo(mgr,
		watches.Self(garden.GetCache(), &corev1beta1.BackupBucket{}, backup.Declared()),
		watches.Kind(of, &resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), flow.EmittedBy(FlowName)),
		seed.CredentialsChanged(func(ctx context.Context, object client.Object) (requests []reconcile.Request) {
			for _, bucket := range seed.BucketsWith(ctx, object) {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: bucket.Name}})
			}
			return requests
		}),
	)
	if err != nil {
		return err
	}
	return backup.WatchWhenDefined(
		mgr, of, built, "backupbuckets.extensions.gardener.cloud", &extensionsv1alpha1.BackupBucket{}, &handler.EnqueueRequestForObject{},
	)
}
