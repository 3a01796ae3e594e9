// Package bastion is an admission plugin of the garden's API. A Bastion gets the Seed and the infrastructure of its Shoot, belongs
// to the Shoot, and shows who made it.
package bastion

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "Bastion",
	Rules: []admission.Rule{
		{Resource: operationsv1alpha1.Resource("bastions"), Operations: admission.OnCreate, Admit: admission.On(create)},
		{Resource: operationsv1alpha1.Resource("bastions"), Operations: admission.OnUpdate, Admit: admission.On(update)},
	},
}

func create(ctx context.Context, request *admission.Request, garden *admission.Garden, bastion, _ *operationsv1alpha1.Bastion) error {
	path, name := field.NewPath("spec", "shootRef", "name"), bastion.Spec.ShootRef.Name
	if name == "" {
		return request.Invalid(field.ErrorList{field.Required(path, "the name of the Shoot")})
	}
	shoot := &gardencorev1beta1.Shoot{}
	found, err := garden.ReadLive(ctx, request.Namespace, name, shoot)
	if err != nil {
		return err
	}
	if problem := unusable(shoot, found); problem != "" {
		return request.Invalid(field.ErrorList{field.Invalid(path, name, problem)})
	}
	metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, constants.AnnotationGardenCreatedBy, request.User.GetName())
	bastion.Spec.SeedName, bastion.Spec.ProviderType = shoot.Spec.SeedName, &shoot.Spec.Provider.Type
	own(bastion, shoot)
	return nil
}

// unusable returns why a Bastion for a Shoot would have no effect; empty if it has one.
func unusable(shoot *gardencorev1beta1.Shoot, found bool) string {
	settings := shoot.Spec.Provider.WorkersSettings
	switch {
	case !found:
		return "the Shoot does not exist"
	case shoot.DeletionTimestamp != nil:
		return "the Shoot is being deleted"
	case shoot.Spec.SeedName == nil:
		return "the Shoot has no Seed yet"
	case len(shoot.Spec.Provider.Workers) == 0:
		return "the Shoot has no nodes"
	case settings != nil && settings.SSHAccess != nil && !settings.SSHAccess.Enabled:
		return "the Shoot does not allow SSH: spec.provider.workersSettings.sshAccess.enabled is false"
	default:
		return ""
	}
}

// update adds an owner that is missing. It refuses nothing, so that the heartbeat of a Bastion always arrives.
func update(ctx context.Context, request *admission.Request, garden *admission.Garden, bastion, _ *operationsv1alpha1.Bastion) error {
	if bastion.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(bastion) != nil {
		return nil
	}
	shoot := &gardencorev1beta1.Shoot{}
	if found, err := garden.ReadLive(ctx, request.Namespace, bastion.Spec.ShootRef.Name, shoot); err == nil && found {
		own(bastion, shoot)
	}
	return nil
}

func own(bastion *operationsv1alpha1.Bastion, shoot *gardencorev1beta1.Shoot) {
	kind := gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot")
	bastion.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(shoot, kind)}
}
