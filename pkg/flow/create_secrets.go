package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createSecrets creates the Secrets that do not exist. It sends a request for each one, because a Secret in the cache
// might already be deleted.
func (e *Emitter) createSecrets(ctx context.Context, secrets []*corev1.Secret) error {
	for _, secret := range secrets {
		err := e.Writer.Create(ctx, secret.DeepCopy(), client.FieldOwner(e.FieldManager))
		if apierrors.IsAlreadyExists(err) {
			err = e.takeOver(ctx, secret)
		}
		if err != nil {
			return fmt.Errorf("create Secret %s: %w", keyOf(secret), err)
		}
	}
	return nil
}

// takeOver adopts an existing Secret of the same name for the owner. It requires the same content and the same flow, or one
// that has released it.
// Such a Secret was left behind by a previous owner of the same name whose bundle had the same name and content. The
// error describes the difference.
func (e *Emitter) takeOver(ctx context.Context, wanted *corev1.Secret) error {
	var found corev1.Secret
	if err := e.Uncached.Get(ctx, client.ObjectKeyFromObject(wanted), &found); err != nil {
		return err
	}
	switch {
	case found.DeletionTimestamp != nil:
		return errors.New("a Secret with this name is being deleted")
	case !reflect.DeepEqual(found.Data, wanted.Data):
		return errors.New("a Secret with this name and different content exists: delete it if it is unused")
	case found.Labels[LabelFlow] != wanted.Labels[LabelFlow] && found.Labels[LabelFlow] != FlowReleased:
		return errors.New("a Secret with this name exists without the labels of the flow: delete it if it is unused")
	case mapContains(found.Labels, wanted.Labels):
		return nil
	}
	before := found.DeepCopy()
	maps.Copy(found.Labels, wanted.Labels)
	found.Annotations = maps.Clone(found.Annotations)
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	maps.Copy(found.Annotations, wanted.Annotations)
	// Fails if the garbage collector has deleted the Secret: its preconditions and this optimistic lock exclude each
	// other.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return e.Writer.Patch(ctx, &found, patch, client.FieldOwner(e.FieldManager))
}

func mapContains(all, some map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}
