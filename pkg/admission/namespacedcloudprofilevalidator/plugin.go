// Package namespacedcloudprofilevalidator is an admission plugin of the garden's API. A NamespacedCloudProfile fits its parent, and does
// not override what only the parent may define.
package namespacedcloudprofilevalidator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "NamespacedCloudProfileValidator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("namespacedcloudprofiles"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validate)},
	},
}

func validate(ctx context.Context, request *admission.Request, garden *admission.Garden, profile, old *gardencorev1beta1.NamespacedCloudProfile) error {
	if profile.DeletionTimestamp != nil || old != nil && equality.Semantic.DeepEqual(profile.Spec, old.Spec) {
		return nil
	}
	parent, err := garden.CloudProfiles.Get(ctx, "", profile.Spec.Parent.Name)
	if apierrors.IsNotFound(err) {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.parent.name: the CloudProfile %q does not exist", profile.Spec.Parent.Name))
	}
	if err != nil {
		return err
	}
	if old == nil {
		old = &gardencorev1beta1.NamespacedCloudProfile{}
	}
	against := check{parent: &parent.Spec, own: &profile.Spec, old: &old.Spec, now: garden.Now()}
	return request.Invalid(against.all())
}
