package shootvalidator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// kubernetesVersion checks that the profile offers the version of Kubernetes. Only new Shoots must not have an expired one: an existing
// cluster may need it on its way to a later version.
func (c *change) kubernetesVersion() field.ErrorList {
	if !differs(c, func(spec *gardencorev1beta1.ShootSpec) string { return spec.Kubernetes.Version }) {
		return nil
	}
	return c.offersVersion(c.shoot.Spec.Kubernetes.Version, c.old == nil, field.NewPath("spec", "kubernetes", "version"))
}

func (c *change) offersVersion(version string, isNew bool, path *field.Path) field.ErrorList {
	found := cloudprofile.FindVersion(c.profile.Spec, version)
	if found == nil {
		return field.ErrorList{field.Invalid(path, version, "the CloudProfile does not have this version of Kubernetes")}
	}
	return c.usable(found, isNew, path)
}

// usable checks that a version can be used now.
func (c *change) usable(version *gardencorev1beta1.ExpirableVersion, isNew bool, path *field.Path) field.ErrorList {
	switch classification := version.ClassificationAt(c.garden.Now()); {
	case classification == gardencorev1beta1.ClassificationUnavailable, classification == gardencorev1beta1.ClassificationExpired && isNew:
		return field.ErrorList{field.Invalid(path, version.Version, fmt.Sprintf("the version is %s", classification))}
	}
	return nil
}
