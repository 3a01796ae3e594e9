package validation

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
)

var (
	resourceName = regexp.MustCompile(`^[a-zA-Z0-9]+$`)
	// resourceTemplate is the only template that values of charts may contain.
	resourceTemplate = regexp.MustCompile(`\{\{-?\s*\.resources\.([a-zA-Z0-9]+)\.data\.[-._a-zA-Z0-9]+\s*-?\}\}`)
)

// ValidateControllerDeployment checks a ControllerDeployment. A type other than helm is in an annotation.
func ValidateControllerDeployment(deployment *gardencorev1.ControllerDeployment) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&deployment.ObjectMeta, false, labelName, field.NewPath("metadata"))
	errs = append(errs, validateDeploymentResources(deployment.Resources, field.NewPath("resources"))...)
	helm, path := deployment.Helm, field.NewPath("helm")
	if helm == nil {
		return append(errs, validateOtherType(deployment.Annotations)...)
	}
	switch {
	case len(helm.RawChart) == 0 && helm.OCIRepository == nil:
		errs = append(errs, field.Required(path, "either rawChart or ociRepository is required"))
	case len(helm.RawChart) > 0 && helm.OCIRepository != nil:
		errs = append(errs, field.Forbidden(path, "must not have both rawChart and ociRepository"))
	}
	if helm.OCIRepository != nil {
		errs = append(errs, ValidateOCIRepository(helm.OCIRepository, path.Child("ociRepository"))...)
	}
	if helm.Values == nil {
		return errs
	}
	return append(errs, ValidateChartValues(helm.Values.Raw, deployment.Resources, path.Child("values"))...)
}

// validateOtherType checks the annotations of a type other than helm. Clients of the old version read them as fields.
func validateOtherType(annotations map[string]string) field.ErrorList {
	errs := required(annotations[gardencorev1.AnnotationMigrationType], field.NewPath("type"))
	config, found := annotations[gardencorev1.AnnotationMigrationProviderConfig]
	if found && json.Unmarshal([]byte(config), &map[string]any{}) != nil {
		path := field.NewPath("metadata", "annotations").Key(gardencorev1.AnnotationMigrationProviderConfig)
		errs = append(errs, field.Invalid(path, "(configuration)", "must be a JSON object"))
	}
	return errs
}

// ValidateControllerDeploymentUpdate checks a ControllerDeployment that replaces another.
func ValidateControllerDeploymentUpdate(deployment, old *gardencorev1.ControllerDeployment) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&deployment.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateControllerDeployment(deployment)...)
}

func validateDeploymentResources(resources []gardencorev1.NamedResourceReference, path *field.Path) field.ErrorList {
	errs := unique(resources, path, "name", func(resource gardencorev1.NamedResourceReference) string { return resource.Name })
	for i, resource := range resources {
		at, ref := path.Index(i), resource.ResourceRef
		if !resourceName.MatchString(resource.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), resource.Name, "must consist of letters and digits"))
		}
		errs = append(errs, referencedType(ref.APIVersion, ref.Kind, at.Child("resourceRef"), secret, configMap)...)
		errs = append(errs, objectName(ref.Name, at.Child("resourceRef", "name"))...)
	}
	return errs
}

// ValidateOCIRepository checks a reference to an OCI artifact.
func ValidateOCIRepository(repository *gardencorev1.OCIRepository, path *field.Path) field.ErrorList {
	has := func(value *string) bool { return ptr.Deref(value, "") != "" }
	var errs field.ErrorList
	switch {
	case has(repository.Ref):
		for name, value := range map[string]*string{"repository": repository.Repository, "tag": repository.Tag, "digest": repository.Digest} {
			errs = append(errs, forbidden(has(value), path.Child(name), "must not be set together with ref")...)
		}
	case !has(repository.Repository):
		errs = append(errs, field.Required(path.Child("repository"), "either ref or repository is required"))
	case !has(repository.Tag) && !has(repository.Digest):
		errs = append(errs, field.Required(path.Child("tag"), "either tag or digest is required"))
	}
	if has(repository.Digest) && !strings.HasPrefix(*repository.Digest, "sha256:") {
		errs = append(errs, field.Invalid(path.Child("digest"), *repository.Digest, "must start with sha256:"))
	}
	if repository.PullSecretRef != nil {
		errs = append(errs, objectName(repository.PullSecretRef.Name, path.Child("pullSecretRef", "name"))...)
	}
	if repository.CABundleSecretRef != nil {
		errs = append(errs, objectName(repository.CABundleSecretRef.Name, path.Child("caBundleSecretRef", "name"))...)
	}
	return errs
}

// validateTemplates checks the texts in values of a chart. They may refer to data of declared resources, but must not
// contain other templates.
func validateTemplates(values []byte, resources sets.Set[string], path *field.Path) field.ErrorList {
	var content any
	if err := json.Unmarshal(values, &content); err != nil {
		return field.ErrorList{field.Invalid(path, "(values)", fmt.Sprintf("must be JSON: %v", err))}
	}
	var errs field.ErrorList
	for text := range texts(content) {
		for _, match := range resourceTemplate.FindAllStringSubmatch(text, -1) {
			if !resources.Has(match[1]) {
				errs = append(errs, field.Invalid(path, match[0], fmt.Sprintf("%s is not in resources", match[1])))
			}
		}
		if rest := resourceTemplate.ReplaceAllString(text, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
			errs = append(errs, field.Invalid(path, text, "templates must have the form {{ .resources.<name>.data.<key> }}"))
		}
	}
	return errs
}

// texts yields the keys and texts of a JSON value.
func texts(value any) func(yield func(string) bool) {
	return func(yield func(string) bool) { yieldTexts(value, yield) }
}

func yieldTexts(value any, yield func(string) bool) bool {
	switch value := value.(type) {
	case string:
		return yield(value)
	case []any:
		for _, item := range value {
			if !yieldTexts(item, yield) {
				return false
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(value) {
			if !yield(key) || !yieldTexts(value[key], yield) {
				return false
			}
		}
	}
	return true
}
