package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// rewritePage is how many objects one reconcile rewrites. This takes a few seconds at the rate limit for requests to a shoot.
	rewritePage = 500
	// shootQPS limits the requests of gardenlet to the API server of a shoot, per second.
	shootQPS = 100
)

// cursor is the position in the rewrite of the objects of one resource.
type cursor struct {
	task flow.Task
	// next is the continue token of the list. count is the number of objects that have been rewritten.
	next  string
	count int
}

// rewriteObjects makes the API server write all objects of a resource into etcd again, encrypted with the active key or
// not encrypted. Each call rewrites one page. After a restart it starts from the beginning. The API server skips objects
// that etcd already stores according to its configuration.
func (r *reconciler) rewriteObjects(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	if in.hibernated() {
		return flow.Outcome{Progress: "objects are rewritten after the shoot has woken up"}, nil
	}
	shoot, err := r.connect(in)
	if err != nil {
		return flow.Outcome{}, err
	}
	resource := strings.TrimPrefix(task.Name, taskRewrite)
	kind, err := shoot.RESTMapper().KindFor(schema.ParseGroupResource(resource).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return flow.Outcome{Done: true}, nil // the API server does not serve the resource, so it has no objects
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("find resource %s in shoot %s: %w", resource, in.Namespace, err)
	}
	at := r.rewritten(in.Owner.UID, task)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = shoot.List(ctx, list, client.Limit(rewritePage), client.Continue(at.next))
	if apierrors.IsResourceExpired(err) {
		at.next, at.count = "", 0
		r.keepCursor(in.Owner.UID, at)
		return flow.Outcome{Progress: "the list of " + resource + " starts again", Again: time.Millisecond}, nil
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("list %s of shoot %s: %w", resource, in.Namespace, err)
	}
	for i := range list.Items {
		if err := rewriteObject(ctx, shoot, kind, &list.Items[i]); err != nil {
			return flow.Outcome{}, fmt.Errorf(
				"rewrite %s %s of shoot %s: %w", resource, client.ObjectKeyFromObject(&list.Items[i]), in.Namespace, err,
			)
		}
	}
	at.count += len(list.Items)
	if at.next = list.Continue; at.next == "" {
		r.keepCursor(in.Owner.UID, cursor{})
		return flow.Outcome{Done: true}, nil
	}
	r.keepCursor(in.Owner.UID, at)
	return flow.Outcome{Progress: fmt.Sprintf("%d %s have been rewritten", at.count, resource), Again: time.Millisecond}, nil
}

// rewriteObject sends a patch that changes nothing. The API server still writes the object if etcd stores it with another
// key. Objects that were created or changed since the list are already stored correctly.
func rewriteObject(ctx context.Context, shoot client.Client, kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}})
	if err != nil {
		return err
	}
	object.SetGroupVersionKind(kind)
	err = shoot.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// rewritten returns the position in a rewrite task.
func (r *reconciler) rewritten(owner types.UID, task flow.Task) cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.rewrites[owner]; at.task == task {
		return at
	}
	return cursor{task: task}
}

// continuesRewrite reports whether the first of the tasks has rewritten a page of objects, and continues with the next one.
func (r *reconciler) continuesRewrite(in Inputs, tasks []flow.Task) bool {
	return len(tasks) > 0 && r.rewritten(in.Owner.UID, tasks[0]).next != ""
}

// keepCursor stores the position in a rewrite task. A cursor without a task removes it.
func (r *reconciler) keepCursor(owner types.UID, at cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.task == (flow.Task{}) {
		delete(r.rewrites, owner)
		return
	}
	r.rewrites[owner] = at
}
