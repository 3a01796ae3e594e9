// Package requeue computes when a controller reconciles an object again.
package requeue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The delay before a failed reconcile is repeated starts at firstRetry and doubles up to lastRetry. The default of controllers grows to 17
// minutes, which is too long for what an administrator has just corrected.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// Backoff returns when a controller repeats a failed reconcile of an object.
func Backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// At returns a result that requests a reconcile at a time, or immediately if that time is past. The zero time means
// never.
func At(next, now time.Time) reconcile.Result {
	if next.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(now), time.Millisecond)}
}

// Earlier returns the earlier of two times. The zero time means never.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
