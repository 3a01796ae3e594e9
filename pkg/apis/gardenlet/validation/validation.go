// Package validation checks configurations of gardenlets.
package validation

import (
	"fmt"
	"time"

	apimachineryvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// Bounds of values.
const (
	leastKubeconfigValidity = 10 * time.Minute
	leastRecordTTL          = 30
	mostRecordTTL           = 600
)

// Validate checks a configuration with its defaults, except for the Seed in it, whose name depends on who deploys the gardenlet.
func Validate(c *v1alpha1.GardenletConfiguration, path *field.Path) field.ErrorList {
	errs := rules.OneOf(c.APIVersion, path.Child("apiVersion"), v1alpha1.APIVersion)
	errs = append(errs, rules.OneOf(c.Kind, path.Child("kind"), v1alpha1.Kind)...)
	errs = append(errs, rules.OneOf(c.LogLevel, path.Child("logLevel"), "info", "debug", "error")...)
	errs = append(errs, rules.OneOf(c.LogFormat, path.Child("logFormat"), "json", "text")...)
	if c.GardenClientConnection != nil && c.GardenClientConnection.KubeconfigValidity != nil {
		errs = append(errs, validateValidity(c.GardenClientConnection.KubeconfigValidity,
			path.Child("gardenClientConnection", "kubeconfigValidity"))...)
	}
	if c.LeaderElection != nil {
		errs = append(errs, configv1alpha1.ValidateLeaderElection(c.LeaderElection, path.Child("leaderElection"))...)
	}
	if c.Resources != nil {
		errs = append(errs, validateResources(c.Resources, path.Child("resources"))...)
	}
	if c.Controllers != nil {
		errs = append(errs, validateControllers(c.Controllers, path.Child("controllers"))...)
	}
	if c.Logging != nil && c.Logging.ShootNodeLogging != nil {
		errs = append(errs, validatePurposes(c.Logging.ShootNodeLogging.ShootPurposes,
			path.Child("logging", "shootNodeLogging", "shootPurposes"))...)
	}
	for i, handler := range c.ExposureClassHandlers {
		at := path.Child("exposureClassHandlers").Index(i).Child("name")
		errs = append(errs, rules.Messages(apimachineryvalidation.IsDNS1123Label(handler.Name), handler.Name, at)...)
	}
	return errs
}

func validateValidity(c *v1alpha1.KubeconfigValidity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Validity != nil && c.Validity.Duration < leastKubeconfigValidity {
		errs = append(errs, field.Invalid(path.Child("validity"), c.Validity.Duration.String(), "must be at least 10m"))
	}
	least, most := *c.AutoRotationJitterPercentageMin, *c.AutoRotationJitterPercentageMax
	if least < 1 || least >= most {
		errs = append(errs, field.Invalid(path.Child("autoRotationJitterPercentageMin"), least,
			"must be at least 1 and less than autoRotationJitterPercentageMax"))
	}
	if most > 100 {
		errs = append(errs, field.Invalid(path.Child("autoRotationJitterPercentageMax"), most, "must be at most 100"))
	}
	return errs
}

func validateResources(c *v1alpha1.ResourcesConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, reserved := range c.Reserved {
		at := path.Child("reserved").Key(string(name))
		capacity, found := c.Capacity[name]
		switch {
		case !found:
			errs = append(errs, field.Invalid(at, reserved.String(), "must be in capacity, too"))
		case reserved.Cmp(capacity) > 0:
			errs = append(errs, field.Invalid(at, reserved.String(), fmt.Sprintf("must not be more than the capacity, %s", capacity.String())))
		}
	}
	return errs
}

func validateControllers(c *v1alpha1.ControllersConfiguration, path *field.Path) field.ErrorList {
	errs := validateConcurrency(c, path)
	backups, at := c.BackupEntry, path.Child("backupEntry")
	hours := *backups.DeletionGracePeriodHours
	if hours < 0 {
		errs = append(errs, field.Invalid(at.Child("deletionGracePeriodHours"), hours, "must not be negative"))
	}
	purposes := at.Child("deletionGracePeriodShootPurposes")
	if len(backups.DeletionGracePeriodShootPurposes) > 0 && hours <= 0 {
		errs = append(errs, field.Forbidden(purposes, "needs deletionGracePeriodHours"))
	}
	errs = append(errs, validatePurposes(backups.DeletionGracePeriodShootPurposes, purposes)...)
	if ttl := *c.Shoot.DNSEntryTTLSeconds; ttl < leastRecordTTL || ttl > mostRecordTTL {
		errs = append(errs, field.Invalid(path.Child("shoot", "dnsEntryTTLSeconds"), ttl,
			fmt.Sprintf("must be between %d and %d", leastRecordTTL, mostRecordTTL)))
	}
	return append(errs, validateRollout(c.Shoot.Rollout, path.Child("shoot", "rollout"))...)
}

func validateConcurrency(c *v1alpha1.ControllersConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, controller := range map[string]*v1alpha1.Concurrency{
		"backupBucket": c.BackupBucket, "backupEntry": &c.BackupEntry.Concurrency, "bastion": c.Bastion,
		"controllerInstallation": c.ControllerInstallation, "controllerInstallationCare": &c.ControllerInstallationCare.Concurrency,
		"controllerInstallationRequired": c.ControllerInstallationRequired, "shoot": &c.Shoot.Concurrency,
		"shootCare": &c.ShootCare.Concurrency, "shootState": &c.ShootState.Concurrency, "shootStatus": c.ShootStatus,
		"networkPolicy": &c.NetworkPolicy.Concurrency, "managedSeed": &c.ManagedSeed.Concurrency, "tokenRequestor": c.TokenRequestor,
		"tokenRequestorWorkloadIdentity": &c.TokenRequestorWorkloadIdentity.Concurrency,
		"vpaEvictionRequirements":        c.VPAEvictionRequirements,
	} {
		if controller == nil || controller.ConcurrentSyncs == nil || *controller.ConcurrentSyncs >= 0 {
			continue
		}
		errs = append(errs, field.Invalid(path.Child(name, "concurrentSyncs"), *controller.ConcurrentSyncs, "must not be negative"))
	}
	return errs
}

func validateRollout(c *v1alpha1.ShootRollout, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if budget := *c.Budget; budget < 1 {
		errs = append(errs, field.Invalid(path.Child("budget"), budget,
			"must be at least 1: set how many ManagedResources of control planes may be rolling out at a time, or leave it out"))
	}
	if nodes := *c.Nodes; nodes < 1 {
		errs = append(errs, field.Invalid(path.Child("nodes"), nodes,
			"must be at least 1: set of how many Shoots the nodes may be rolling out at a time, or leave it out"))
	}
	if failed := *c.MaxFailed; failed < 1 {
		errs = append(errs, field.Invalid(path.Child("maxFailed"), failed,
			"must be at least 1: set how many Shoots have to fail to stop a rollout, or leave it out"))
	}
	return errs
}

func validatePurposes(purposes []gardencorev1beta1.ShootPurpose, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, purpose := range purposes {
		errs = append(errs, rules.OneOf(purpose, path.Index(i), gardencorev1beta1.ShootPurposeEvaluation, gardencorev1beta1.ShootPurposeTesting,
			gardencorev1beta1.ShootPurposeDevelopment, gardencorev1beta1.ShootPurposeProduction, gardencorev1beta1.ShootPurposeInfrastructure)...)
	}
	return errs
}
