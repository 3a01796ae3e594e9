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
	// rewritePage is how many objects a pass rewrites: that takes a few seconds at the rate of requests to a shoot.
	rewritePage = 500
	// shootQPS limits the requests of gardenlet to the API server of a shoot, per second.
	shootQPS = 100
)

// cursor is how far the objects of a resource are rewritten.
type cursor struct {
	task flow.Task
	// next is where the list goes on, and count how many objects were rewritten before.
	next  string
	count int
}

// rewriteObjects has all objects of a resource written into etcd again: with the key in use, or without one. A pass rewrites a page of them. After a
// restart it begins again, and the API server writes those that are left only: an object that is in etcd as the configuration says is not written.
func (r *reconciler) rewriteObjects(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	if in.hibernated() {
		return flow.Outcome{Progress: "objects are rewritten when the shoot is awake"}, nil
	}
	shoot, err := r.connect(in)
	if err != nil {
		return flow.Outcome{}, err
	}
	resource := strings.TrimPrefix(task.Name, taskRewrite)
	kind, err := shoot.RESTMapper().KindFor(schema.ParseGroupResource(resource).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return flow.Outcome{Done: true}, nil // the API server does not serve it, and has no objects of it
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
		return flow.Outcome{Progress: "the list of " + resource + " begins again", Again: time.Millisecond}, nil
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("list %s of shoot %s: %w", resource, in.Namespace, err)
	}
	for i := range list.Items {
		if err := rewriteObject(ctx, shoot, kind, &list.Items[i]); err != nil {
			return flow.Outcome{}, fmt.Errorf("rewrite %s %s of shoot %s: %w", resource, client.ObjectKeyFromObject(&list.Items[i]), in.Namespace, err)
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

// rewriteObject changes nothing of an object. The API server writes it nevertheless if etcd has it with another key. One that was created or
// changed meanwhile is written as it should be already.
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

// rewritten returns how far a task is.
func (r *reconciler) rewritten(owner types.UID, task flow.Task) cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.rewrites[owner]; at.task == task {
		return at
	}
	return cursor{task: task}
}

func (r *reconciler) keepCursor(owner types.UID, at cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.task == (flow.Task{}) {
		delete(r.rewrites, owner)
		return
	}
	r.rewrites[owner] = at
}
