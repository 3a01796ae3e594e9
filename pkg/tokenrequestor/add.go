package tokenrequestor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/requeue"
)

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = "token-requestor"
	// conflictRetry is the delay after a conflict: another client changed the object.
	conflictRetry = time.Second
	// timeout limits the time of a reconcile, as in gardener-resource-manager.
	timeout = 3 * time.Minute
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AddToManager registers the controller. It watches the metadata of the Secrets of the source cluster.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Metrics.observe(r)
	build := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesMetadata(&corev1.Secret{}, r.handler())
	if r.Accounts != nil {
		build = build.WatchesRawSource(source.Func(r.watchAccounts))
	}
	if r.Options.CleanUp {
		build = build.WatchesRawSource(source.Func(r.sweep))
	}
	return build.WithOptions(controller.Options{
		MaxConcurrentReconciles: r.Options.ConcurrentSyncs,
		ReconciliationTimeout:   timeout,
		RateLimiter:             requeue.Backoff(),
	}).Complete(r)
}

// handler enqueues Secrets that are relevant, or were relevant before the event. An update to the same version is a
// resync, which checks everything again.
func (r *Reconciler) handler() handler.EventHandler {
	add := func(object client.Object, q queue) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if r.isSource(e.Object) {
				add(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !r.isSource(e.ObjectOld) && !r.isSource(e.ObjectNew) {
				return
			}
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				r.memories.recheck(client.ObjectKeyFromObject(e.ObjectNew))
			}
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if r.isSource(e.Object) {
				add(e.Object, q)
			}
		},
	}
}

// sweep finds the objects that this token requestor created before it started, and enqueues the Secrets for which it
// created them.
func (r *Reconciler) sweep(ctx context.Context, q queue) error {
	go func() {
		for delays := requeue.Backoff(); ; {
			sources, err := r.findMarkedWithin(ctx, timeout)
			if err == nil {
				for _, source := range sources {
					q.Add(reconcile.Request{NamespacedName: source})
				}
				return
			}
			delay := delays.When(reconcile.Request{})
			log.FromContext(ctx).WithName(ControllerName).Error(err, "Could not list the objects to clean up", "again", delay.String())
			select {
			case <-ctx.Done():
				return
			case <-r.Clock.After(delay):
			}
		}
	}()
	return nil
}

func (r *Reconciler) findMarkedWithin(ctx context.Context, timeout time.Duration) ([]types.NamespacedName, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s", timeout))
	defer cancel()
	return r.findMarked(ctx)
}
