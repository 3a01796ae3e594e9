package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Type is the API version and kind of what a reference refers to.
type Type struct{ APIVersion, Kind string }

// The kinds that most references are to.
var (
	Secret           = Type{"v1", "Secret"}
	ConfigMap        = Type{"v1", "ConfigMap"}
	InternalSecret   = Type{v1beta1.SchemeGroupVersion.String(), "InternalSecret"}
	Project          = Type{v1beta1.SchemeGroupVersion.String(), "Project"}
	Shoot            = Type{v1beta1.SchemeGroupVersion.String(), "Shoot"}
	WorkloadIdentity = Type{"security.gardener.cloud/v1alpha1", "WorkloadIdentity"}
)

// ReferencedType reports a reference to a kind other than the allowed ones.
func ReferencedType(apiVersion, kind string, path *field.Path, allowed ...Type) field.ErrorList {
	errs := append(Required(apiVersion, path.Child("apiVersion")), Required(kind, path.Child("kind"))...)
	if len(errs) > 0 {
		return errs
	}
	var names []string
	for _, one := range allowed {
		if one == (Type{apiVersion, kind}) {
			return nil
		}
		names = append(names, one.APIVersion+" "+one.Kind)
	}
	return field.ErrorList{field.NotSupported(path, apiVersion+" "+kind, names)}
}

// Credentials reports what is wrong with a required reference to credentials in any namespace. Without allowed kinds the
// credentials can be a Secret, an InternalSecret or a WorkloadIdentity.
func Credentials(ref *corev1.ObjectReference, path *field.Path, allowed ...Type) field.ErrorList {
	if ref == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(allowed) == 0 {
		allowed = []Type{Secret, InternalSecret, WorkloadIdentity}
	}
	errs := ReferencedType(ref.APIVersion, ref.Kind, path, allowed...)
	errs = append(errs, ObjectName(ref.Name, path.Child("name"))...)
	return append(errs, NamespaceName(ref.Namespace, path.Child("namespace"))...)
}
