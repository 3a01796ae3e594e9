package validation

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

var (
	secret         = rules.Secret
	configMap      = rules.ConfigMap
	internalSecret = rules.InternalSecret
)

// referencedType checks the type of the referenced object.
func referencedType(apiVersion, kind string, path *field.Path, allowed ...rules.Type) field.ErrorList {
	return rules.ReferencedType(apiVersion, kind, path, allowed...)
}

// credentials checks a reference to credentials in any namespace.
func credentials(ref *corev1.ObjectReference, path *field.Path, allowed ...rules.Type) field.ErrorList {
	return rules.Credentials(ref, path, allowed...)
}

// localCredentials checks a reference to credentials in the namespace of the referring object.
func localCredentials(ref autoscalingv1.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	errs := referencedType(ref.APIVersion, ref.Kind, path, secret, internalSecret, rules.WorkloadIdentity)
	return append(errs, objectName(ref.Name, path.Child("name"))...)
}

func objectName(name string, path *field.Path) field.ErrorList { return rules.ObjectName(name, path) }

func namespaceName(name string, path *field.Path) field.ErrorList {
	return rules.NamespaceName(name, path)
}

func namedResources(resources []v1beta1.NamedResourceReference, path *field.Path) field.ErrorList {
	errs := unique(resources, path, "name", func(resource v1beta1.NamedResourceReference) string { return resource.Name })
	for i, resource := range resources {
		at, ref := path.Index(i), resource.ResourceRef
		errs = append(errs, required(resource.Name, at.Child("name"))...)
		errs = append(errs, objectName(ref.Name, at.Child("resourceRef", "name"))...)
		errs = append(errs, referencedType(ref.APIVersion, ref.Kind, at.Child("resourceRef"), secret, configMap, rules.WorkloadIdentity)...)
	}
	return errs
}

func extensions(list []v1beta1.Extension, path *field.Path) field.ErrorList {
	errs := unique(list, path, "type", func(extension v1beta1.Extension) string { return extension.Type })
	for i, extension := range list {
		errs = append(errs, typeName(extension.Type, path.Index(i).Child("type"))...)
	}
	return errs
}

// typeName checks the type of an extension.
func typeName(name string, path *field.Path) field.ErrorList {
	if errs := required(name, path); errs != nil {
		return errs
	}
	return dnsLabel(name, path)
}

func tolerations(list []v1beta1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	keys, pairs := map[string]bool{}, map[string]bool{}
	for i, toleration := range list {
		at := path.Index(i)
		errs = append(errs, messages(validation.IsQualifiedName(toleration.Key), toleration.Key, at.Child("key"))...)
		pair := toleration.Key
		if toleration.Value != nil {
			errs = append(errs, messages(validation.IsValidLabelValue(*toleration.Value), *toleration.Value, at.Child("value"))...)
			pair += "=" + *toleration.Value
		}
		if pairs[pair] || toleration.Value == nil && keys[toleration.Key] {
			errs = append(errs, field.Duplicate(at, pair))
		}
		keys[toleration.Key], pairs[pair] = true, true
	}
	return errs
}

func accessRestrictions(names []string, path *field.Path) field.ErrorList {
	errs := unique(names, path, "name", func(name string) string { return name })
	for i, name := range names {
		errs = append(errs, required(name, path.Index(i).Child("name"))...)
	}
	return errs
}
