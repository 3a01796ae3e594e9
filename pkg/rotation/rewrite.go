package rotation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// rewritePage is how many objects one call rewrites. At 100 requests per second, this takes a few seconds.
const rewritePage = 500

// Position is the position in the rewrite of the objects of one resource.
type Position struct {
	Task flow.Task
	// Next is the continue token of the list. Count is the number of objects that have been rewritten.
	Next  string
	Count int
}

// Rewriter makes API servers write objects into etcd again. It is safe for concurrent use, by one caller for each owner.
type Rewriter struct {
	// FieldManager of the writes, which change nothing.
	FieldManager client.FieldOwner

	mu        sync.Mutex
	positions map[types.UID]Position
}

// Rewrite makes the API server of a cluster write all objects of the resource of a task into etcd again, encrypted with the active key or not
// encrypted. Each call rewrites one page. After a restart it starts from the beginning. The API server skips objects that etcd already stores
// according to its configuration. name is the name of the cluster for messages.
func (r *Rewriter) Rewrite(ctx context.Context, cluster client.Client, name string, owner types.UID, task flow.Task) (flow.Outcome, error) {
	resource := strings.TrimPrefix(task.Name, taskRewrite)
	kind, err := cluster.RESTMapper().KindFor(schema.ParseGroupResource(resource).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return flow.Outcome{Done: true}, nil // the API server does not serve the resource, so it has no objects
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("find resource %s in %s: %w", resource, name, err)
	}
	at := r.at(owner, task)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = cluster.List(ctx, list, client.Limit(rewritePage), client.Continue(at.Next))
	if apierrors.IsResourceExpired(err) {
		at.Next, at.Count = "", 0
		r.Keep(owner, at)
		return flow.Outcome{Progress: "the list of " + resource + " starts again", Again: time.Millisecond}, nil
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("list %s of %s: %w", resource, name, err)
	}
	for i := range list.Items {
		if err := r.rewriteObject(ctx, cluster, kind, &list.Items[i]); err != nil {
			return flow.Outcome{}, fmt.Errorf("rewrite %s %s of %s: %w", resource, client.ObjectKeyFromObject(&list.Items[i]), name, err)
		}
	}
	at.Count += len(list.Items)
	if at.Next = list.Continue; at.Next == "" {
		r.Keep(owner, Position{})
		return flow.Outcome{Done: true}, nil
	}
	r.Keep(owner, at)
	return flow.Outcome{Progress: fmt.Sprintf("%d %s have been rewritten", at.Count, resource), Again: time.Millisecond}, nil
}

// rewriteObject sends a patch that changes nothing. The API server still writes the object if etcd stores it with another key. Objects that were
// created or changed since the list are already stored correctly.
func (r *Rewriter) rewriteObject(ctx context.Context, cluster client.Client, kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}})
	if err != nil {
		return err
	}
	object.SetGroupVersionKind(kind)
	err = cluster.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), r.FieldManager)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// at returns the position in a task.
func (r *Rewriter) at(owner types.UID, task flow.Task) Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.positions[owner]; at.Task == task {
		return at
	}
	return Position{Task: task}
}

// Continues reports whether the first of the tasks has rewritten a page of objects, and continues with the next one.
func (r *Rewriter) Continues(owner types.UID, tasks []flow.Task) bool {
	return len(tasks) > 0 && r.at(owner, tasks[0]).Next != ""
}

// Keep stores the position in a task. A position without a task removes it.
func (r *Rewriter) Keep(owner types.UID, at Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.Task == (flow.Task{}) {
		delete(r.positions, owner)
		return
	}
	if r.positions == nil {
		r.positions = map[types.UID]Position{}
	}
	r.positions[owner] = at
}
