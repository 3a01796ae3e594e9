package validation

import (
	"fmt"
	"regexp"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// ValidateManagedSeedSet checks a ManagedSeedSet. Its templates are stored as given, and checked with their defaults.
func ValidateManagedSeedSet(set *v1alpha1.ManagedSeedSet) field.ErrorList {
	set = set.DeepCopy()
	v1alpha1.SetDefaultsTemplates(set)
	errs := apivalidation.ValidateObjectMeta(&set.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, inGarden(set.Namespace)...)
	spec, path := &set.Spec, field.NewPath("spec")
	errs = append(errs, notNegative(spec.Replicas, path.Child("replicas"))...)
	errs = append(errs, notNegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	selector, found := validateSelector(&spec.Selector, path.Child("selector"))
	errs = append(errs, found...)
	errs = append(errs, validateTemplate(&spec.Template, selector, path.Child("template"))...)
	at := path.Child("shootTemplate")
	errs = append(errs, matches(selector, spec.ShootTemplate.Metadata.Labels, at.Child("metadata", "labels"))...)
	if len(spec.ShootTemplate.Spec.Provider.Workers) == 0 {
		errs = append(errs, field.Required(at.Child("spec", "provider", "workers"), "a Seed needs nodes"))
	}
	errs = append(errs, validation.ValidateShootTemplate(&spec.ShootTemplate, set.Namespace, at)...)
	if strategy := spec.UpdateStrategy; strategy != nil {
		at := path.Child("updateStrategy")
		errs = append(errs, rules.OptionalOneOf(strategy.Type, at.Child("type"), v1alpha1.RollingUpdateStrategyType)...)
		if strategy.RollingUpdate != nil {
			errs = append(errs, notNegative(strategy.RollingUpdate.Partition, at.Child("rollingUpdate", "partition"))...)
		}
	}
	return errs
}

// ValidateManagedSeedSetUpdate checks a ManagedSeedSet that replaces another.
func ValidateManagedSeedSetUpdate(set, old *v1alpha1.ManagedSeedSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&set.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, rules.Immutable(set.Spec.Selector, old.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, rules.Immutable(set.Spec.RevisionHistoryLimit, old.Spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	errs = append(errs, validateGardenletConfigUpdate(&set.Spec.Template.Spec.Gardenlet, &old.Spec.Template.Spec.Gardenlet,
		path.Child("template", "spec", "gardenlet"))...)
	now, before := set.DeepCopy(), old.DeepCopy()
	v1alpha1.SetDefaultsTemplates(now)
	v1alpha1.SetDefaultsTemplates(before)
	errs = append(errs, validation.ValidateShootTemplateUpdate(&now.Spec.ShootTemplate, &before.Spec.ShootTemplate, path.Child("shootTemplate"))...)
	return append(errs, ValidateManagedSeedSet(set)...)
}

// ValidateManagedSeedSetStatusUpdate checks the status of a ManagedSeedSet that replaces another.
func ValidateManagedSeedSetStatusUpdate(set, old *v1alpha1.ManagedSeedSet) field.ErrorList {
	status, before, path := &set.Status, &old.Status, field.NewPath("status")
	errs := apivalidation.ValidateNonnegativeField(int64(status.Replicas), path.Child("replicas"))
	errs = append(errs, observedGeneration(status.ObservedGeneration, path)...)
	if status.CollisionCount == nil && ptr.Deref(before.CollisionCount, 1) == 0 {
		errs = append(errs, field.Invalid(path.Child("collisionCount"), nil, "must not be removed"))
	}
	for name, count := range map[string]int32{
		"readyReplicas": status.ReadyReplicas, "currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas,
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(count), path.Child(name))...)
		if count > status.Replicas {
			errs = append(errs, field.Invalid(path.Child(name), count, "must not be more than status.replicas"))
		}
	}
	for name, count := range map[string][2]int32{
		"nextReplicaNumber": {status.NextReplicaNumber, before.NextReplicaNumber},
		"collisionCount":    {ptr.Deref(status.CollisionCount, 0), ptr.Deref(before.CollisionCount, 0)},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(count[0]), path.Child(name))...)
		if count[0] < count[1] {
			errs = append(errs, field.Invalid(path.Child(name), count[0], fmt.Sprintf("must not decrease, it was %d", count[1])))
		}
	}
	if status.PendingReplica != nil {
		errs = append(errs, validatePendingReplica(status.PendingReplica, set.Name, path.Child("pendingReplica"))...)
	}
	return errs
}

func observedGeneration(generation int64, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(generation, path.Child("observedGeneration"))
}

// ValidateManagedSeedStatusUpdate checks the status of a ManagedSeed that replaces another.
func ValidateManagedSeedStatusUpdate(seed, _ *v1alpha1.ManagedSeed) field.ErrorList {
	return observedGeneration(seed.Status.ObservedGeneration, field.NewPath("status"))
}

// ValidateGardenletStatusUpdate checks the status of a Gardenlet that replaces another.
func ValidateGardenletStatusUpdate(gardenlet, _ *v1alpha1.Gardenlet) field.ErrorList {
	return observedGeneration(gardenlet.Status.ObservedGeneration, field.NewPath("status"))
}

func validatePendingReplica(pending *v1alpha1.PendingReplica, set string, path *field.Path) field.ErrorList {
	errs := rules.OneOf(pending.Reason, path.Child("reason"), v1alpha1.ShootReconcilingReason, v1alpha1.ShootDeletingReason,
		v1alpha1.ShootReconcileFailedReason, v1alpha1.ShootDeleteFailedReason, v1alpha1.ManagedSeedPreparingReason,
		v1alpha1.ManagedSeedDeletingReason, v1alpha1.SeedNotReadyReason, v1alpha1.ShootNotHealthyReason)
	if !regexp.MustCompile("^" + regexp.QuoteMeta(set) + "-[0-9]+$").MatchString(pending.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), pending.Name, fmt.Sprintf("must be %s-<ordinal>", set)))
	}
	return append(errs, notNegative(pending.Retries, path.Child("retries"))...)
}

// validateSelector returns the selector of a set, or nil if it is invalid.
func validateSelector(given *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if errs := rules.Selector(given, path); errs != nil {
		return nil, errs
	}
	selector, err := metav1.LabelSelectorAsSelector(given)
	if err != nil || selector.Empty() {
		return nil, field.ErrorList{field.Invalid(path, given, "empty selector is not valid for a ManagedSeedSet")}
	}
	return selector, nil
}

// validateTemplate checks the ManagedSeeds of a set.
func validateTemplate(template *v1alpha1.ManagedSeedTemplate, selector labels.Selector, path *field.Path) field.ErrorList {
	errs := validation.ValidateTemplateMetadata(&template.Metadata, path.Child("metadata"))
	errs = append(errs, matches(selector, template.Metadata.Labels, path.Child("metadata", "labels"))...)
	spec, gardenlet := path.Child("spec"), path.Child("spec", "gardenlet")
	if template.Spec.Shoot != nil {
		errs = append(errs, field.Forbidden(spec.Child("shoot"), "the Shoots are those of the set"))
	}
	errs = append(errs, validateGardenletConfig(&template.Spec.Gardenlet, gardenlet)...)
	_, given, err := splitSeedConfig(template.Spec.Gardenlet.Config.Raw)
	if err != nil {
		return errs // reported above
	}
	at := gardenlet.Child("config", "seedConfig")
	seed, err := seedTemplate(given)
	switch {
	case err != nil: // reported above
	case seed == nil:
		errs = append(errs, field.Required(at, ""))
	default:
		errs = append(errs, matches(selector, seed.Metadata.Labels, at.Child("metadata", "labels"))...)
	}
	return errs
}

// matches returns an error if a selector does not select labels.
func matches(selector labels.Selector, given map[string]string, path *field.Path) field.ErrorList {
	if selector == nil || selector.Matches(labels.Set(given)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, given, "must match spec.selector")}
}
