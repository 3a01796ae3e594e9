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

// createSecrets creates the Secrets that do not exist. It asks for each: what a cache shows may be gone.
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

// takeOver makes a Secret of the same name one of the owner. It does so if the Secret has the same content and belongs to the same flow: then a
// predecessor of the same name has left it, whose bundle had the same name and content. The error says what is different.
func (e *Emitter) takeOver(ctx context.Context, wanted *corev1.Secret) error {
	var found corev1.Secret
	if err := e.Uncached.Get(ctx, client.ObjectKeyFromObject(wanted), &found); err != nil {
		return err
	}
	switch {
	case found.DeletionTimestamp != nil:
		return errors.New("one of that name is being deleted")
	case !reflect.DeepEqual(found.Data, wanted.Data):
		return errors.New("one of that name exists and holds something else: delete it if nothing uses it")
	case found.Labels[LabelFlow] != wanted.Labels[LabelFlow]:
		return errors.New("one of that name exists without the labels of the flow: delete it if nothing uses it")
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
	// Not if the garbage collector has deleted it since: its preconditions and this one exclude each other.
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
