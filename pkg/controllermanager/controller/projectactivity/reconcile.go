package projectactivity

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// reconciler records the activities in namespaces in the status of their Projects.
type reconciler struct {
	client client.Client
	clock  clock.PassiveClock

	mu sync.Mutex
	// latest are the times of activities that are not recorded yet, by Project.
	latest map[string]time.Time
}

// note remembers an activity in a Project.
func (r *reconciler) note(project string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.After(r.latest[project]) {
		r.latest[project] = at
	}
}

// take returns the last activity in a Project, and forgets it.
func (r *reconciler) take(project string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.latest[project]
	delete(r.latest, project)
	return at
}

// Reconcile writes the time of the last activity in a Project, at most once in each interval.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	at := r.take(request.Name)
	if at.IsZero() {
		return reconcile.Result{}, nil
	}
	wait, err := r.record(ctx, request.Name, at)
	if err != nil || wait > 0 {
		r.note(request.Name, at)
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// record writes the time of an activity, or returns how long that has to wait.
func (r *reconciler) record(ctx context.Context, name string, at time.Time) (time.Duration, error) {
	project := &corev1beta1.Project{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, project); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if !Later(project, at) {
		return 0, nil
	}
	if wait := Wait(project, r.clock.Now()); wait > 0 {
		return wait, nil
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": project.UID}, "status": map[string]any{"lastActivityTimestamp": metav1.NewTime(at)},
	})
	if err != nil {
		return 0, fmt.Errorf("encode the last activity in Project %s: %w", name, err)
	}
	err = r.client.Status().Patch(ctx, project, client.RawPatch(types.MergePatchType, data), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write status.lastActivityTimestamp of Project %s: %w", name, err)
	}
	return 0, nil
}
