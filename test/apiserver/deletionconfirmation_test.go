package apiserver

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// confirmDeletion sets the annotation without which the API server does not delete some objects.
func confirmDeletion(object client.Object) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[constants.AnnotationConfirmationDeletion] = "true"
	object.SetAnnotations(annotations)
}

// TestDeletionConfirmation checks that Shoots, Projects and ShootStates are deleted only with a confirmation, alone and as a
// collection, and that the API server stores who confirmed the deletion of a Shoot.
func TestDeletionConfirmation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const namespace = "garden-confirmed"
	shoot, other := newShoot(t, c, namespace, "one"), newShoot(t, c, namespace, "other")
	project := exampleOf(t, "Project", "", "confirmed", &gardencorev1beta1.Project{})
	project.Spec.Namespace, project.Annotations = ptr(namespace), nil
	state := exampleOf(t, "ShootState", namespace, "one", &gardencorev1beta1.ShootState{})
	state.Annotations = nil
	kit.Must(t, c.Create(t.Context(), project))
	kit.Must(t, c.Create(t.Context(), state))
	for _, object := range []client.Object{shoot, project, state} {
		for _, value := range []string{"", "false", "yes"} {
			object.SetAnnotations(map[string]string{constants.AnnotationConfirmationDeletion: value})
			kit.Must(t, c.Update(t.Context(), object))
			err := c.Delete(t.Context(), object)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `must have a "confirmation.gardener.cloud/deletion" annotation to delete`) {
				t.Errorf("%T with the confirmation %q: %v", object, value, err)
			}
			if err := c.Delete(t.Context(), object, client.DryRunAll); !apierrors.IsForbidden(err) {
				t.Errorf("dry run of %T with the confirmation %q: %v", object, value, err)
			}
		}
	}
	if err := c.DeleteAllOf(t.Context(), &gardencorev1beta1.Shoot{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("deletion of all Shoots: %v", err)
	}
	if shoot.Annotations[constants.AnnotationDeletionConfirmedBy] != "" {
		t.Errorf("annotations %v without a confirmation", shoot.Annotations)
	}
	for _, object := range []client.Object{shoot, project, state} {
		confirmDeletion(object)
		kit.Must(t, c.Update(t.Context(), object))
	}
	if shoot.Annotations[constants.AnnotationDeletionConfirmedBy] == "" {
		t.Errorf("annotations %v do not have who confirmed the deletion", shoot.Annotations)
	}
	for _, object := range []client.Object{shoot, project, state} {
		kit.Must(t, c.Delete(t.Context(), object))
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("a Shoot without a confirmation: %v", err)
	}
	confirmDeletion(other)
	kit.Must(t, c.Update(t.Context(), other))
	kit.Must(t, c.DeleteAllOf(t.Context(), &gardencorev1beta1.Shoot{}, client.InNamespace(namespace)))
}
