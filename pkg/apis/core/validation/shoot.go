package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// maxShootName is the maximum length of the name of a new Shoot: the names of a Shoot and its Project have at most 21
// characters together.
const maxShootName = 20

// shootContext has the inputs that several rules about a Shoot share.
type shootContext struct {
	// namespace is the namespace of the Shoot.
	namespace string
	// version is the version of Kubernetes, or nil if it cannot be parsed.
	version *version.Version
	// workerless is true if the Shoot has no worker pools. selfHosted is true if its control plane runs on one of them.
	workerless, selfHosted bool
	// tolerance is the failure tolerance of the control plane. It is empty if the control plane is not highly available.
	tolerance v1beta1.FailureToleranceType
	// template is true if the Shoot is a template, in which infrastructure Shoots are allowed everywhere.
	template bool
	// sameIssuers is true if the token issuers are the same as in the stored Shoot.
	sameIssuers bool
}

// atLeast reports whether the version of Kubernetes is the given version, such as 1.34, or a later one.
func (c *shootContext) atLeast(minor string) bool {
	return c.version != nil && c.version.AtLeast(version.MustParseGeneric(minor))
}

// removed returns an error if a deprecated field is set that a version of Kubernetes forbids.
func (c *shootContext) removed(set bool, minor string, path *field.Path) field.ErrorList {
	return forbidden(set && c.atLeast(minor), path, "is not supported from Kubernetes "+minor+" on")
}

// needsNodes returns an error if a field is set that a Shoot without worker pools must not have.
func (c *shootContext) needsNodes(set bool, path *field.Path) field.ErrorList {
	return forbidden(set && c.workerless, path, "is not supported for a Shoot without worker pools")
}

func contextOf(spec *v1beta1.ShootSpec, namespace string, template bool) *shootContext {
	c := &shootContext{namespace: namespace, workerless: len(spec.Provider.Workers) == 0, template: template}
	if parsed, err := version.ParseGeneric(spec.Kubernetes.Version); err == nil {
		c.version = parsed
	}
	c.selfHosted, c.tolerance = selfHosted(spec), failureTolerance(spec)
	return c
}

// selfHosted reports whether the control plane of a Shoot runs on one of its worker pools.
func selfHosted(spec *v1beta1.ShootSpec) bool {
	return slices.ContainsFunc(spec.Provider.Workers, func(worker v1beta1.Worker) bool { return worker.ControlPlane != nil })
}

// ValidateShoot checks a new Shoot.
func ValidateShoot(shoot *v1beta1.Shoot) field.ErrorList {
	metadata, path := field.NewPath("metadata"), field.NewPath("spec")
	errs := validateShoot(shoot, contextOf(&shoot.Spec, shoot.Namespace, false))
	if len(shoot.Name) > maxShootName {
		errs = append(errs, field.TooLong(metadata.Child("name"), shoot.Name, maxShootName))
	}
	errs = append(errs, validateOperations(shoot, &v1beta1.Shoot{})...)
	errs = append(errs, validateForceDeletion(shoot, &v1beta1.Shoot{})...)
	for i, finalizer := range shoot.Finalizers {
		errs = append(errs, forbidden(finalizer == constants.GardenerName || finalizer == constants.FinalizerReferenceProtection,
			metadata.Child("finalizers").Index(i), fmt.Sprintf("finalizer %q cannot be added on creation", finalizer))...)
	}
	return append(errs, forbidden(ptr.Deref(shoot.Spec.CloudProfileName, "") != "" && shoot.Spec.CloudProfile != nil,
		path.Child("cloudProfileName"),
		"must not be set together with cloudProfile")...)
}

func validateShoot(shoot *v1beta1.Shoot, c *shootContext) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&shoot.ObjectMeta, true, labelName, field.NewPath("metadata"))
	errs = append(errs, validateGracePeriods(shoot.Annotations, field.NewPath("metadata", "annotations"))...)
	errs = append(errs, withoutTwoHyphens(shoot.Name, field.NewPath("metadata", "name"))...)
	return append(errs, validateShootSpec(&shoot.Spec, c, field.NewPath("spec"))...)
}

// validateGracePeriods checks the annotations with the times after which the clean-up of a cluster removes finalizers.
func validateGracePeriods(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{
		constants.AnnotationShootCleanupWebhooksFinalizeGracePeriodSeconds,
		constants.AnnotationShootCleanupExtendedAPIsFinalizeGracePeriodSeconds,
		constants.AnnotationShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds,
	} {
		value, set := annotations[name]
		if seconds, err := strconv.ParseInt(value, 10, 64); set && (err != nil || seconds < 0) {
			errs = append(errs, field.Invalid(path.Key(name), value, "must be a number of seconds"))
		}
	}
	return errs
}

// ValidateShootTemplate checks the Shoot of a template in a namespace.
func ValidateShootTemplate(template *v1beta1.ShootTemplate, namespace string, path *field.Path) field.ErrorList {
	errs := ValidateTemplateMetadata(&template.Metadata, path.Child("metadata"))
	return append(errs, validateShootSpec(&template.Spec, contextOf(&template.Spec, namespace, true), path.Child("spec"))...)
}

// ValidateTemplateMetadata checks the labels and annotations of a template, which the objects that are created from it get.
func ValidateTemplateMetadata(meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
}

func validateShootSpec(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	errs := required(spec.Region, path.Child("region"))
	errs = append(errs, validateShootIdentity(spec, c, path)...)
	errs = append(errs, validateCredentialsBinding(spec, c, path)...)
	if spec.Addons != nil {
		errs = append(errs, validateAddons(spec, c, path.Child("addons"))...)
	}
	if spec.DNS != nil {
		errs = append(errs, validateShootDNS(spec.DNS, c, path.Child("dns"))...)
	}
	errs = append(errs, extensions(spec.Extensions, path.Child("extensions"))...)
	errs = append(errs, namedResources(spec.Resources, path.Child("resources"))...)
	errs = append(errs, tolerations(spec.Tolerations, path.Child("tolerations"))...)
	if spec.Hibernation != nil {
		errs = append(errs, validateHibernation(spec.Hibernation, c, path.Child("hibernation"))...)
	}
	errs = append(errs, validateKubernetes(spec, c, path.Child("kubernetes"))...)
	errs = append(errs, validateEncryptionRotation(spec, path)...)
	errs = append(errs, validateNetworking(spec, c, path.Child("networking"))...)
	if spec.Maintenance != nil {
		errs = append(errs, validateMaintenance(spec.Maintenance, c, path.Child("maintenance"))...)
	}
	if spec.Monitoring != nil && spec.Monitoring.Alerting != nil {
		errs = append(errs, validateReceivers(spec.Monitoring.Alerting.EmailReceivers, path.Child("monitoring", "alerting", "emailReceivers"))...)
	}
	errs = append(errs, validateProvider(&spec.Provider, c, path.Child("provider"))...)
	errs = append(errs, validateSystemComponents(spec.SystemComponents, c, path.Child("systemComponents"))...)
	errs = append(errs, validateControlPlane(spec.ControlPlane, path.Child("controlPlane"))...)
	names := make([]string, len(spec.AccessRestrictions))
	for i, restriction := range spec.AccessRestrictions {
		names[i] = restriction.Name
	}
	return append(errs, accessRestrictions(names, path.Child("accessRestrictions"))...)
}

// validateShootIdentity checks the purpose of a Shoot, and its profile, Seed and scheduler.
func validateShootIdentity(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	errs := optionalOneOf(spec.Purpose, path.Child("purpose"), v1beta1.ShootPurposeEvaluation, v1beta1.ShootPurposeTesting,
		v1beta1.ShootPurposeDevelopment, v1beta1.ShootPurposeProduction, v1beta1.ShootPurposeInfrastructure)
	infrastructure := ptr.Deref(spec.Purpose, "") == v1beta1.ShootPurposeInfrastructure
	errs = append(errs, forbidden(infrastructure && c.namespace != constants.GardenNamespace && !c.template, path.Child("purpose"),
		"only Shoots in the namespace garden can have the purpose infrastructure")...)
	errs = append(errs, validateCloudProfileReference(spec, c, path)...)
	errs = append(errs, notEmpty(spec.SeedName, path.Child("seedName"))...)
	errs = append(errs, forbidden(spec.SeedName != nil && c.selfHosted, path.Child("seedName"), "a self-hosted Shoot has no Seed")...)
	if spec.SeedSelector != nil {
		errs = append(errs, selector(&spec.SeedSelector.LabelSelector, path.Child("seedSelector"))...)
	}
	if spec.ExposureClassName != nil {
		errs = append(errs, dnsSubdomain(*spec.ExposureClassName, path.Child("exposureClassName"))...)
	}
	if spec.SchedulerName != nil {
		errs = append(errs, dnsLabel(*spec.SchedulerName, path.Child("schedulerName"))...)
	}
	return errs
}

// validateCloudProfileReference checks the reference to a profile. If the version allows the deprecated name, the name is
// sufficient, and the reference is set when the Shoot is stored.
func validateCloudProfileReference(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	hasName := ptr.Deref(spec.CloudProfileName, "") != ""
	errs := c.removed(hasName, "1.34", path.Child("cloudProfileName"))
	if spec.CloudProfile == nil {
		if hasName && c.version != nil && !c.atLeast("1.34") {
			return errs
		}
		return append(errs, field.Required(path.Child("cloudProfile"), ""))
	}
	errs = append(errs, oneOf(spec.CloudProfile.Kind, path.Child("cloudProfile", "kind"),
		v1beta1.CloudProfileReferenceKindCloudProfile, v1beta1.CloudProfileReferenceKindNamespacedCloudProfile)...)
	return append(errs, required(spec.CloudProfile.Name, path.Child("cloudProfile", "name"))...)
}

func validateCredentialsBinding(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	secretBinding, binding := path.Child("secretBindingName"), path.Child("credentialsBindingName")
	hasSecret, hasCredentials := ptr.Deref(spec.SecretBindingName, "") != "", ptr.Deref(spec.CredentialsBindingName, "") != ""
	errs := c.removed(hasSecret, "1.34", secretBinding)
	errs = append(errs, c.needsNodes(spec.SecretBindingName != nil, secretBinding)...)
	errs = append(errs, c.needsNodes(spec.CredentialsBindingName != nil, binding)...)
	switch {
	case c.workerless:
	case hasSecret && hasCredentials:
		errs = append(errs, field.Forbidden(secretBinding, "must not be set together with credentialsBindingName"))
	case !hasSecret && !hasCredentials && !c.selfHosted:
		errs = append(errs, field.Required(binding, "the infrastructure needs credentials"))
	}
	return errs
}

func validateControlPlane(plane *v1beta1.ControlPlane, path *field.Path) field.ErrorList {
	if plane == nil {
		return nil
	}
	errs := uniqueValues(plane.Zones, path.Child("zones"))
	wanted := 1
	if plane.HighAvailability != nil {
		tolerance := plane.HighAvailability.FailureTolerance.Type
		errs = append(errs, oneOf(tolerance, path.Child("highAvailability", "failureTolerance", "type"),
			v1beta1.FailureToleranceTypeNode, v1beta1.FailureToleranceTypeZone)...)
		if tolerance == v1beta1.FailureToleranceTypeZone {
			wanted = 3
		}
	}
	if n := len(plane.Zones); n > 0 && n != wanted {
		errs = append(errs, field.Invalid(path.Child("zones"), strings.Join(plane.Zones, ","), fmt.Sprintf("must have %d zones", wanted)))
	}
	return errs
}
