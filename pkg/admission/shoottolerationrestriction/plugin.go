// Package shoottolerationrestriction is an admission plugin of the garden's API. Shoots may have only the tolerations that
// their Project or the configuration of the plugin allows, and get the default ones of both.
package shoottolerationrestriction

import (
	"context"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{Name: "ShootTolerationRestriction", Configure: configure}

// configuration is the kind Configuration of shoottolerationrestriction.admission.gardener.cloud/v1alpha1.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	// Defaults are the tolerations that each new Shoot gets.
	Defaults []gardencorev1beta1.Toleration `json:"defaults,omitempty"`
	// Whitelist are the tolerations that each Shoot may have.
	Whitelist []gardencorev1beta1.Toleration `json:"whitelist,omitempty"`
}

func configure(reader io.Reader) ([]admission.Rule, error) {
	config := &configuration{}
	if err := admission.Decode(reader, config); err != nil {
		return nil, err
	}
	shoots := gardencorev1beta1.Resource("shoots")
	return []admission.Rule{
		{Resource: shoots, Operations: admission.OnCreate, Admit: admission.On(config.admit)},
		{Resource: shoots, Operations: admission.OnCreateOrUpdate, Validate: admission.On(config.validate)},
	}, nil
}

// admit adds the default tolerations whose keys the Shoot does not have. It runs once, so that a webhook can remove one, and
// a request in progress succeeds while the API server stops and can no longer read a Project live.
func (c *configuration) admit(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if request.Again {
		return nil
	}
	project, err := tolerationsOf(ctx, garden, request.Namespace)
	if err != nil {
		return err
	}
	for _, toleration := range slices.Concat(c.Defaults, project.Defaults) {
		if !slices.ContainsFunc(shoot.Spec.Tolerations, func(own gardencorev1beta1.Toleration) bool { return own.Key == toleration.Key }) {
			shoot.Spec.Tolerations = append(shoot.Spec.Tolerations, toleration)
		}
	}
	return nil
}

// validate refuses tolerations that the request adds and no one allows. Existing ones stay allowed.
func (c *configuration) validate(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	var existing []gardencorev1beta1.Toleration
	if old != nil {
		existing = old.Spec.Tolerations
	}
	added := func(toleration gardencorev1beta1.Toleration) bool { return !contains(existing, toleration) }
	if !slices.ContainsFunc(shoot.Spec.Tolerations, added) {
		return nil
	}
	project, err := tolerationsOf(ctx, garden, request.Namespace)
	if err != nil {
		return err
	}
	return admission.Forbidden(refused(shoot.Spec.Tolerations, existing, slices.Concat(c.Whitelist, project.Whitelist)))
}

// refused returns an error for each toleration that is neither an existing nor an allowed one. An allowed one without a value
// allows all values of its key.
func refused(tolerations, existing, allowed []gardencorev1beta1.Toleration) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range tolerations {
		if !contains(existing, toleration) && !allows(allowed, toleration) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "tolerations").Index(i), fmt.Sprintf(
				"the key %q with this value is not allowed: spec.tolerations.whitelist of the Project has the allowed ones", toleration.Key)))
		}
	}
	return errs
}

func allows(allowed []gardencorev1beta1.Toleration, wanted gardencorev1beta1.Toleration) bool {
	return slices.ContainsFunc(allowed, func(one gardencorev1beta1.Toleration) bool {
		return one.Key == wanted.Key && (one.Value == nil || equality.Semantic.DeepEqual(one.Value, wanted.Value))
	})
}

func contains(tolerations []gardencorev1beta1.Toleration, wanted gardencorev1beta1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(one gardencorev1beta1.Toleration) bool { return equality.Semantic.DeepEqual(one, wanted) })
}

func tolerationsOf(ctx context.Context, garden *admission.Garden, namespace string) (gardencorev1beta1.ProjectTolerations, error) {
	project, err := garden.ProjectOf(ctx, namespace)
	if err != nil || project == nil || project.Spec.Tolerations == nil {
		return gardencorev1beta1.ProjectTolerations{}, err
	}
	return *project.Spec.Tolerations, nil
}
