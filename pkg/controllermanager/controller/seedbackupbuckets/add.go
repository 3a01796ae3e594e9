package seedbackupbuckets

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

const (
	// name of the controller.
	name = "seed-backupbuckets-check"
	// indexSeed is the index of BackupBuckets by their Seeds.
	indexSeed = "seed"
)

// Controller returns the controller of the condition BackupBucketsReady.
func Controller() controller.Controller {
	return controller.Controller{
		Name: name, Add: add,
		Indexes: []controller.Index{{Object: &corev1beta1.BackupBucket{}, Field: indexSeed, Values: seedOf}},
		Rights: []controller.Right{
			controller.May("BackupBuckets of Seeds", corev1beta1.GroupName, []string{"backupbuckets", "seeds"}, controller.Reads()...),
			controller.May("the condition that summarizes the BackupBuckets of a Seed", corev1beta1.GroupName, []string{"seeds/status"}, "patch"),
		},
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	settings := deps.Config.SeedBackupBucketsCheck
	r := &reconciler{deps.Client, settings.Threshold(corev1beta1.SeedBackupBucketsReady), deps.Clock}
	toSeed := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return controller.Requests(seedOf(object)...)
	})
	return controller.Start(mgr, name, r, settings.ConcurrentSyncs,
		controller.On(&corev1beta1.Seed{}, nil, controller.Changes(func(before, after *corev1beta1.Seed) bool {
			return (before.Spec.Backup == nil) != (after.Spec.Backup == nil) || !equality.Semantic.DeepEqual(
				corev1beta1.FindCondition(before.Status.Conditions, corev1beta1.SeedBackupBucketsReady),
				corev1beta1.FindCondition(after.Status.Conditions, corev1beta1.SeedBackupBucketsReady),
			)
		})),
		controller.On(&corev1beta1.BackupBucket{}, toSeed, controller.Changes(func(before, after *corev1beta1.BackupBucket) bool {
			return !equality.Semantic.DeepEqual(before.Status.LastError, after.Status.LastError) || !equality.Semantic.DeepEqual(before.Spec.SeedName, after.Spec.SeedName)
		})),
	)
}

// seedOf returns the name of the Seed of a BackupBucket.
func seedOf(object client.Object) []string {
	if bucket, ok := object.(*corev1beta1.BackupBucket); ok && bucket.Spec.SeedName != nil {
		return []string{*bucket.Spec.SeedName}
	}
	return nil
}
