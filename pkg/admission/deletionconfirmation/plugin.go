// Package deletionconfirmation is an admission plugin of the garden's API. Shoots, Projects and ShootStates can be deleted
// only if an annotation confirms that. A Project can demand that a second person confirms the deletion of its Shoots.
package deletionconfirmation

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/confirmation"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "DeletionConfirmation",
	Rules: []admission.Rule{
		{
			Resource: gardencorev1beta1.Resource("shoots"), Operations: []admission.Operation{apiadmission.Create, apiadmission.Update},
			Admit: admission.On(recordUser),
		},
		deletionOf("shoots", admission.On(validateShoot)),
		deletionOf("projects", confirmedOnly),
		deletionOf("shootstates", confirmedOnly),
	},
}

func deletionOf(resource string, validate admission.Handler) admission.Rule {
	return admission.Rule{Resource: gardencorev1beta1.Resource(resource), Operations: []admission.Operation{apiadmission.Delete}, Validate: validate}
}

// recordUser stores who confirmed the deletion of a Shoot.
func recordUser(_ context.Context, request *admission.Request, _ *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	var before metav1.Object
	if old != nil {
		before = old
	}
	recordConfirmer(shoot, before, request.User.GetName())
	return nil
}

func confirmedOnly(_ context.Context, request *admission.Request, _ *admission.Garden) error {
	object, ok := request.Old.(metav1.Object)
	if !ok {
		return fmt.Errorf("the object to delete is a %T", request.Old)
	}
	return confirmation.Check(object)
}

// validateShoot demands the confirmation, and that of a second person if the Project of the Shoot says so.
func validateShoot(ctx context.Context, request *admission.Request, garden *admission.Garden, _, shoot *gardencorev1beta1.Shoot) error {
	if err := confirmation.Check(shoot); err != nil {
		return err
	}
	project, err := garden.ProjectOf(ctx, shoot.Namespace)
	if err != nil {
		return err
	}
	if project == nil {
		return nil // No one demands a second person. What is left after a Project must stay deletable.
	}
	return approved(shoot, project, request.Resource.Resource, request.User.GetName())
}
