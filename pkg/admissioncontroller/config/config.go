// Package config reads the configuration file of an admission controller.
package config

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// format is how the file is read.
var format = configfile.Format[v1alpha1.AdmissionControllerConfiguration]{
	Kind: v1alpha1.Kind, SetDefaults: v1alpha1.SetDefaults, Validate: validate,
}

// Load reads, defaults and validates the configuration file at path. The error lists all problems with the paths of the
// fields.
func Load(path string) (*v1alpha1.AdmissionControllerConfiguration, error) { return format.Load(path) }

// Parse decodes, defaults and validates a configuration in YAML or JSON. Unknown fields and duplicate keys are errors.
func Parse(data []byte) (*v1alpha1.AdmissionControllerConfiguration, error) {
	return format.Parse(data)
}

// validate checks a configuration with its defaults.
func validate(c *v1alpha1.AdmissionControllerConfiguration) field.ErrorList {
	var errs field.ErrorList
	oneOf := func(path *field.Path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, field.NotSupported(path, value, allowed))
		}
	}
	oneOf(field.NewPath("apiVersion"), c.APIVersion, v1alpha1.APIVersion)
	oneOf(field.NewPath("kind"), c.Kind, v1alpha1.Kind)
	oneOf(field.NewPath("logLevel"), c.LogLevel, "info", "debug", "error")
	oneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")
	tls := c.Server.Webhooks.TLS
	if tls.ServerCertDir != "" && tls.SelfManaged != nil {
		errs = append(errs, field.Forbidden(field.NewPath("server", "webhooks", "tls", "selfManaged"), "must not be set together with serverCertDir"))
	}
	limits := c.Server.ResourceAdmissionConfiguration
	if limits == nil {
		return errs
	}
	path := field.NewPath("server", "resourceAdmissionConfiguration")
	oneOf(path.Child("operationMode"), *limits.OperationMode, v1alpha1.ModeBlock, v1alpha1.ModeLog)
	for i, limit := range limits.Limits {
		errs = append(errs, validateLimit(path.Child("limits").Index(i), limit)...)
	}
	for i, subject := range limits.UnrestrictedSubjects {
		errs = append(errs, validateSubject(path.Child("unrestrictedSubjects").Index(i), subject)...)
	}
	return errs
}

func validateLimit(path *field.Path, limit v1alpha1.ResourceLimit) field.ErrorList {
	var errs field.ErrorList
	for name, values := range map[string][]string{"apiGroups": limit.APIGroups, "apiVersions": limit.APIVersions, "resources": limit.Resources} {
		if len(values) == 0 {
			errs = append(errs, field.Required(path.Child(name), `"*" matches all`))
		}
	}
	if limit.Size == nil && limit.Count == nil {
		errs = append(errs, field.Required(path.Child("size"), "a limit needs a size or a count"))
	}
	if limit.Size != nil && limit.Size.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("size"), limit.Size.String(), "must not be negative"))
	}
	if limit.Count != nil && *limit.Count < 0 {
		errs = append(errs, field.Invalid(path.Child("count"), *limit.Count, "must not be negative"))
	}
	return errs
}

func validateSubject(path *field.Path, subject rbacv1.Subject) field.ErrorList {
	var errs field.ErrorList
	if subject.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), `"*" matches all`))
	}
	switch subject.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
		if subject.APIGroup != rbacv1.GroupName {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{rbacv1.GroupName}))
		}
	case rbacv1.ServiceAccountKind:
		if subject.APIGroup != "" {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{""}))
		}
		if subject.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), "a ServiceAccount is in a namespace"))
		}
	default:
		kinds := []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}
		errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind, kinds))
	}
	return errs
}
