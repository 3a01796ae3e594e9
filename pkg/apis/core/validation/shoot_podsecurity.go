package validation

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// podSecurity is the configuration of the admission plugin PodSecurity, with which kube-apiserver must be able to start.
type podSecurity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Defaults   struct {
		Enforce        string `json:"enforce,omitempty"`
		EnforceVersion string `json:"enforce-version,omitempty"`
		Audit          string `json:"audit,omitempty"`
		AuditVersion   string `json:"audit-version,omitempty"`
		Warn           string `json:"warn,omitempty"`
		WarnVersion    string `json:"warn-version,omitempty"`
	} `json:"defaults,omitempty"`
	Exemptions struct {
		Usernames      []string `json:"usernames,omitempty"`
		Namespaces     []string `json:"namespaces,omitempty"`
		RuntimeClasses []string `json:"runtimeClasses,omitempty"`
	} `json:"exemptions,omitempty"`
}

var policyVersion = regexp.MustCompile(`^(latest|v1\.(0|[1-9][0-9]*))$`)

func validatePodSecurity(raw []byte, path *field.Path) field.ErrorList {
	config := &podSecurity{}
	strict, err := json.UnmarshalStrict(raw, config)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, "(configuration)", fmt.Sprintf("must be a PodSecurityConfiguration: %v", err))}
	}
	const group = "pod-security.admission.config.k8s.io/"
	errs := oneOf(config.APIVersion, path.Child("apiVersion"), group+"v1", group+"v1beta1", group+"v1alpha1")
	errs = append(errs, oneOf(config.Kind, path.Child("kind"), "PodSecurityConfiguration")...)
	at := path.Child("defaults")
	for name, level := range map[string]*string{
		"enforce": &config.Defaults.Enforce, "audit": &config.Defaults.Audit, "warn": &config.Defaults.Warn,
	} {
		if *level != "" {
			errs = append(errs, optionalOneOf(level, at.Child(name), "privileged", "baseline", "restricted")...)
		}
	}
	for name, version := range map[string]string{
		"enforce-version": config.Defaults.EnforceVersion, "audit-version": config.Defaults.AuditVersion,
		"warn-version": config.Defaults.WarnVersion,
	} {
		if version != "" && !policyVersion.MatchString(version) {
			errs = append(errs, field.Invalid(at.Child(name), version, "must be latest or a minor version such as v1.34"))
		}
	}
	for name, values := range map[string][]string{
		"usernames": config.Exemptions.Usernames, "namespaces": config.Exemptions.Namespaces,
		"runtimeClasses": config.Exemptions.RuntimeClasses,
	} {
		list := path.Child("exemptions", name)
		errs = append(errs, uniqueValues(values, list)...)
		for i, value := range values {
			switch name {
			case "usernames":
				errs = append(errs, required(value, list.Index(i))...)
			case "namespaces":
				errs = append(errs, namespaceName(value, list.Index(i))...)
			default:
				errs = append(errs, objectName(value, list.Index(i))...)
			}
		}
	}
	return errs
}
