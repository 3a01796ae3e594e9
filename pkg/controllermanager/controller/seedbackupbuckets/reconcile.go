package seedbackupbuckets

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// reconciler maintains the condition.
type reconciler struct {
	client client.Client
	// threshold is how long a failure is reported as Progressing.
	threshold time.Duration
	clock     clock.PassiveClock
}

// Reconcile writes the condition of a Seed if it has changed.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.client.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var buckets corev1beta1.BackupBucketList
	if err := r.client.List(ctx, &buckets, client.UnsafeDisableDeepCopy, client.MatchingFields{indexSeed: seed.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the BackupBuckets of Seed %s: %w", seed.Name, err)
	}
	now := r.clock.Now()
	condition, next := Decide(seed, buckets.Items, r.threshold, now)
	if condition == nil {
		return reconcile.Result{}, nil
	}
	before := corev1beta1.FindCondition(seed.Status.Conditions, condition.Type)
	if before == nil || !equality.Semantic.DeepEqual(*before, *condition) {
		if err := controller.WriteSeedCondition(ctx, r.client, seed.Name, *condition); err != nil {
			return reconcile.Result{}, err
		}
	}
	return requeue.At(next, now), nil
}
