package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pageSize is the number of objects in one page of a list.
	pageSize = 500
	// errorsKept limits the number of reported errors of objects.
	errorsKept = 3
)

// Cleaner deletes objects of a shoot cluster.
type Cleaner struct {
	// Client of the cluster. It reads only metadata, without a cache.
	Client client.Client
	// Began is the start of the clean-up.
	Began time.Time
	Now   time.Time
}

// Run deletes the objects of a stage. left describes the remaining objects for users, and is empty if the stage is
// complete. It can be repeated at any time. The error joins some of the errors of single objects. They do not stop the
// deletion of other objects.
func (c Cleaner) Run(ctx context.Context, stage Stage) (left string, err error) {
	if stage.Name == StageVolumes {
		return c.volumes(ctx)
	}
	remaining := &leftovers{}
	var errs []error
	for _, kind := range stage.Kinds {
		objects, changed, err := c.look(ctx, kind, true)
		if err == nil && changed {
			objects, _, err = c.look(ctx, kind, false)
		}
		if err != nil && len(errs) < errorsKept {
			errs = append(errs, err)
		}
		remaining.add(kind, objects)
	}
	return remaining.String(), errors.Join(errs...)
}

// look reads the objects of a kind, acts on each if act is set, and returns the objects for which the clean-up waits.
func (c Cleaner) look(ctx context.Context, kind Kind, act bool) (blocking []metav1.PartialObjectMetadata, changed bool, err error) {
	var errs []error
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for again := true; again; again = list.Continue != "" {
		options := []client.ListOption{
			client.MatchingLabelsSelector{Selector: kind.Selector}, client.Limit(pageSize), client.Continue(list.Continue),
		}
		err := c.Client.List(ctx, list, options...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, false, nil // the API server does not serve the kind
		}
		if err != nil {
			return blocking, changed, errors.Join(append(errs, fmt.Errorf("list objects of kind %s: %w", kind.Kind, err))...)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind.GroupVersionKind)
			if blocks(kind, object, c.Began) {
				blocking = append(blocking, *object)
			}
			if !act {
				continue
			}
			acted, err := c.act(ctx, kind, object)
			changed = changed || acted
			if err != nil && len(errs) < errorsKept {
				errs = append(errs, err)
			}
		}
	}
	return blocking, changed, errors.Join(errs...)
}

// act deletes an object or removes its finalizers, unless it was replaced since it was read.
func (c Cleaner) act(ctx context.Context, kind Kind, object *metav1.PartialObjectMetadata) (acted bool, err error) {
	only := client.Preconditions{UID: ptr.To(object.UID)}
	remove := func(grace time.Duration) error {
		options := []client.DeleteOption{only, client.PropagationPolicy(metav1.DeletePropagationBackground)}
		if kind.Graceful {
			options = append(options, client.GracePeriodSeconds(int64(grace.Seconds())))
		}
		return c.Client.Delete(ctx, object, options...)
	}
	switch decide(kind, object, c.Now) {
	case actionWait:
		return false, nil
	case actionDelete:
		err = remove(kind.GracePeriod)
	case actionFinalize:
		if len(object.Finalizers) > 0 {
			err = c.removeFinalizers(ctx, object)
		}
		if err == nil && kind.Graceful {
			err = remove(0)
		}
	}
	if err = client.IgnoreNotFound(err); apierrors.IsConflict(err) {
		err = nil // another object has the name now; the next run handles it
	}
	if err != nil {
		return true, fmt.Errorf("delete %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
	}
	return true, nil
}

// removeFinalizers removes the finalizers of an object, unless it was replaced since it was read.
func (c Cleaner) removeFinalizers(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID, "finalizers": nil}})
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}
