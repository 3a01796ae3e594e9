package backupentry

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// AddToManager adds the controller. The cache contains the objects of the seed that flows have emitted.
func AddToManager(
	mgr manager.Manager, garden cluster.Cluster, of cache.Cache, seed *backup.Seed,
	config *gardenletv1alpha1.BackupEntryController, workers int,
) error {
	r := &Reconciler{Seed: seed, Live: of, Config: config}
	built, err := watches.Controller{Name: "backupentry", Reconciler: r, Workers: workers}.AddTo(mgr,
		watches.Self(garden.GetCache(), &corev1beta1.BackupEntry{}, backup.Declared()),
		watches.Mapped(garden.GetCache(), &corev1beta1.BackupBucket{}, r.ofBucket),
		watches.Kind(of, &resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), flow.EmittedBy(FlowName)),
		seed.CredentialsChanged(r.ofObject),
	)
	if err != nil {
		return err
	}
	return backup.WatchWhenDefined(
		mgr, of, built, "backupentries.extensions.gardener.cloud", &extensionsv1alpha1.BackupEntry{}, flow.ToOwner(),
	)
}

// ofObject maps an object of the garden that was read for some entry, a bucket of another Seed or credentials, to the entries that may use it.
func (r *Reconciler) ofObject(ctx context.Context, object client.Object) (requests []reconcile.Request) {
	if _, is := object.(*corev1beta1.BackupBucket); is {
		return r.ofBucket(ctx, object)
	}
	for _, bucket := range r.BucketsWith(ctx, object) {
		requests = append(requests, r.ofBucket(ctx, &bucket)...)
	}
	return append(requests, r.inOtherBuckets(ctx)...)
}

// inOtherBuckets returns the entries in the buckets of other Seeds: those whose backups move. The cache does not show which credentials they use.
func (r *Reconciler) inOtherBuckets(ctx context.Context) []reconcile.Request {
	var buckets corev1beta1.BackupBucketList
	var entries corev1beta1.BackupEntryList
	if err := errors.Join(r.Garden.List(ctx, &buckets), r.Garden.List(ctx, &entries)); err != nil {
		return nil // the caches have not synced, and their watches report all entries once they have
	}
	own := map[string]bool{}
	for i := range buckets.Items {
		own[buckets.Items[i].Name] = true
	}
	var requests []reconcile.Request
	for i := range entries.Items {
		if !own[entries.Items[i].Spec.BucketName] {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&entries.Items[i])})
		}
	}
	return requests
}

// ofBucket maps a BackupBucket to its BackupEntries.
func (r *Reconciler) ofBucket(ctx context.Context, object client.Object) []reconcile.Request {
	var all corev1beta1.BackupEntryList
	if err := r.Garden.List(ctx, &all); err != nil {
		return nil // the entries read their bucket when they are reconciled
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if all.Items[i].Spec.BucketName == object.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
