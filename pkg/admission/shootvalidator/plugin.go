// Package shootvalidator is an admission plugin of the garden's API. It checks Shoots against the objects that they refer to: their
// CloudProfile, their Project, their Seed, their credentials and the domains of other Shoots. What an update does not change is not
// judged again, so that a new rule or a changed CloudProfile never blocks an unrelated change or a deletion.
package shootvalidator

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// subresourceBinding of a Shoot assigns it to a Seed.
const subresourceBinding = "binding"

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootValidator",
	Rules: []admission.Rule{
		{
			Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreateOrUpdate, Subresources: []string{"", subresourceBinding},
			Validate: admission.On(validate),
		},
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnDelete, Validate: admission.On(validateDeletion)},
	},
}

// change is a Shoot that is created, or that replaces another one.
type change struct {
	request *admission.Request
	garden  *admission.Garden
	// shoot is the new Shoot. old is the stored one; it is nil if the Shoot is created.
	shoot, old *gardencorev1beta1.Shoot
	// profile is what the CloudProfile offers. It is set for the rules of a profile only.
	profile admission.Profile
}

// rule is a rule that can read other objects.
type rule func(ctx context.Context, c *change) error

// rules end the decision with their first error. Their order is that of Gardener.
var rules = []rule{
	checkSeedSelector, checkProject, checkSeedInDeletion, checkFrozen, checkSeedName, checkSeed, checkHibernation, checkIssuer, checkCredentials,
	checkProviderConfigs, checkAdmissionPlugins, checkDomain, checkOffers,
}

// offers are the rules of a CloudProfile. All of their errors are reported.
var offers = []func(*change) field.ErrorList{
	(*change).keptOffers, (*change).kubernetesVersion, (*change).region, (*change).accessRestrictions, (*change).providerType,
	(*change).zonePinning, (*change).workers, (*change).nodesTotal,
}

func validate(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	c := &change{request: request, garden: garden, shoot: shoot, old: old}
	if shoot.DeletionTimestamp != nil || request.Subresource == "" && old != nil && issuer.IsManaged(shoot.Annotations) == issuer.IsManaged(old.Annotations) && !c.changes() {
		return nil
	}
	for _, rule := range rules {
		if err := rule(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// changes reports whether the specification changes.
func (c *change) changes() bool {
	return c.old == nil || !equality.Semantic.DeepEqual(c.shoot.Spec, c.old.Spec)
}

// differs reports whether a part of the specification changes. All parts of a new Shoot do.
func differs[T any](c *change, part func(*gardencorev1beta1.ShootSpec) T) bool {
	return c.old == nil || !equality.Semantic.DeepEqual(part(&c.shoot.Spec), part(&c.old.Spec))
}

// checkOffers checks the parts of a Shoot that its CloudProfile limits, if they change.
func checkOffers(ctx context.Context, c *change) error {
	if !differs(c, limitedByProfile) {
		return nil
	}
	var err error
	if c.profile, err = c.garden.ProfileOf(ctx, c.request.Namespace, &c.shoot.Spec); err != nil {
		return err
	}
	if err := checkRoot(ctx, c); err != nil {
		return err
	}
	var errs field.ErrorList
	for _, check := range offers {
		errs = append(errs, check(c)...)
	}
	return admission.Forbidden(errs)
}

// limitedByProfile returns the parts of a specification that the rules of a CloudProfile read.
func limitedByProfile(spec *gardencorev1beta1.ShootSpec) []any {
	return []any{
		cloudprofile.ReferenceOf(spec), spec.Region, spec.AccessRestrictions, spec.Provider.Type, spec.Provider.Workers, spec.ControlPlane,
		spec.Kubernetes.Version, spec.Kubernetes.Kubelet,
	}
}
