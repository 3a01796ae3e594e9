// Package deletionconfirmation is an admission plugin of the garden's API. Shoots, Projects and ShootStates can be deleted
// only if an annotation confirms that.
package deletionconfirmation

import (
	"context"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Name is the name of the plugin.
const Name = "DeletionConfirmation"

// Register adds the plugin to a set of plugins.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return plugin{admission.NewHandler(admission.Create, admission.Update, admission.Delete)}, nil
	})
}

type plugin struct{ *admission.Handler }

var (
	_ admission.MutationInterface   = plugin{}
	_ admission.ValidationInterface = plugin{}
)

// Admit implements admission.MutationInterface. It stores who confirmed the deletion of a Shoot.
func (plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete || a.GetSubresource() != "" || a.GetResource().GroupResource() != gardencorev1beta1.Resource("shoots") {
		return nil
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return fmt.Errorf("read the metadata of a Shoot: %w", err)
	}
	var old metav1.Object
	if a.GetOperation() == admission.Update {
		if old, err = meta.Accessor(a.GetOldObject()); err != nil {
			return fmt.Errorf("read the metadata of a stored Shoot: %w", err)
		}
	}
	recordConfirmer(object, old, a.GetUserInfo().GetName())
	return nil
}

// Validate implements admission.ValidationInterface. The store calls it with each object that it is about to delete, also
// for the deletion of a collection.
func (plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	guarded := []string{"projects", "shoots", "shootstates"}
	if a.GetOperation() != admission.Delete || a.GetSubresource() != "" || a.GetResource().Group != gardencorev1beta1.GroupName ||
		!slices.Contains(guarded, a.GetResource().Resource) || a.GetOldObject() == nil {
		return nil
	}
	object, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return fmt.Errorf("read the metadata of an object to delete: %w", err)
	}
	if err := confirmed(object); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}
