// Package controllerregistrationresources is an admission plugin of the garden's API. Only one ControllerRegistration is
// primarily responsible for a kind and a type of extension.
package controllerregistrationresources

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ControllerRegistrationResources",
	Rules: []admission.Rule{{
		Resource: gardencorev1beta1.Resource("controllerregistrations"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validate),
	}},
}

func validate(ctx context.Context, _ *admission.Request, garden *admission.Garden, registration, old *gardencorev1beta1.ControllerRegistration) error {
	if registration.DeletionTimestamp != nil {
		return nil
	}
	before := map[string]bool{}
	if old != nil {
		for _, resource := range old.Spec.Resources {
			before[primaryKey(resource)] = true
		}
	}
	var errs field.ErrorList
	for i, resource := range registration.Spec.Resources {
		key := primaryKey(resource)
		if key == "" || before[key] {
			continue
		}
		others, err := garden.ControllerRegistrations.LiveBy(ctx, admission.ControllerRegistrationsByResource, key)
		if err != nil {
			return err
		}
		if other := primary(others, registration.Name, key); other != "" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "resources").Index(i), fmt.Sprintf(
				"the ControllerRegistration %q is already primary for %s: set primary to false in one of the two", other, key)))
		}
	}
	return admission.Forbidden(errs)
}

// primary returns the name of another ControllerRegistration that is primary for a key; empty if there is none.
func primary(registrations []*gardencorev1beta1.ControllerRegistration, own, key string) string {
	for _, other := range registrations {
		for _, resource := range other.Spec.Resources {
			if other.Name != own && primaryKey(resource) == key {
				return other.Name
			}
		}
	}
	return ""
}

// primaryKey returns the index key of a resource that is primary; empty if it is not.
func primaryKey(resource gardencorev1beta1.ControllerResource) string {
	if !ptr.Deref(resource.Primary, true) {
		return ""
	}
	return admission.Key(resource.Kind, resource.Type)
}
