package shootretry

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Controller returns the controller that retries operations which failed because of a rate limit.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-retry",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			settings := deps.Config.ShootRetry
			periods := Periods{Retry: settings.RetryPeriod.Duration, Jitter: settings.RetryJitterPeriod.Duration}
			return controller.Start(mgr, "shoot-retry", &reconciler{deps.Client, deps.Clock, periods}, settings.ConcurrentSyncs,
				controller.Watch{Object: &corev1beta1.Shoot{}, Changed: fails()})
		},
		Keeps: []controller.Keep{controller.Keeping(Keep)},
		Rights: []controller.Right{
			controller.May("retries operations of Shoots", corev1beta1.GroupName, []string{"shoots"}, "get", "list", "watch", "patch"),
		},
	}
}

// fails passes Shoots whose operation has to be retried, when that or its time changes.
func fails() predicate.Predicate {
	retried := func(object client.Object) (int64, bool) {
		shoot, ok := object.(*corev1beta1.Shoot)
		if !ok {
			return 0, false
		}
		at, is := Decide(shoot, Periods{})
		return at.Unix(), is
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			_, is := retried(e.Object)
			return is
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := retried(e.ObjectOld)
			after, is := retried(e.ObjectNew)
			return is && (!was || before != after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// reconciler retries the operations of Shoots.
type reconciler struct {
	client  client.Client
	clock   clock.PassiveClock
	periods Periods
}

// Reconcile annotates a Shoot whose operation has to be retried now, or comes back at that time.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	at, retried := Decide(shoot, r.periods)
	if !retried {
		return reconcile.Result{}, nil
	}
	if wait := at.Sub(r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	// With the resourceVersion, the API server refuses a decision from an outdated cache.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion,
		"annotations": map[string]string{constants.AnnotationGardenerOperation: constants.OperationRetry},
	}})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encode the annotation of Shoot %s: %w", request, err)
	}
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	err = r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("retry the operation of Shoot %s that failed because of a rate limit: %w", request, err)
	}
	log.FromContext(ctx).Info("Retried an operation that failed because of a rate limit")
	return reconcile.Result{}, nil
}
