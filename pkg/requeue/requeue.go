// Package requeue says when a controller reconciles an object again.
package requeue

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// At returns the result that asks for a reconcile at a time; at once if that time is past. Zero stands for never.
func At(next, now time.Time) reconcile.Result {
	if next.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(now), time.Millisecond)}
}

// Earlier returns the earlier of two times; zero stands for never.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
