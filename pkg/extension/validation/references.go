package validation

import (
	"context"
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// Kinds to which a Shoot may refer.
const (
	KindSecret           = "Secret"
	KindConfigMap        = "ConfigMap"
	KindWorkloadIdentity = "WorkloadIdentity"
)

// Reference returns the object to which a name in a configuration refers: an entry of spec.resources of the Shoot with
// one of the kinds. Guideline: only Secrets, ConfigMaps and WorkloadIdentities can be referenced.
func Reference(
	shoot *corev1beta1.Shoot, name string, path *field.Path, kinds ...string,
) (*autoscalingv1.CrossVersionObjectReference, field.ErrorList) {
	at := slices.IndexFunc(shoot.Spec.Resources, func(one corev1beta1.NamedResourceReference) bool { return one.Name == name })
	if at < 0 {
		return nil, field.ErrorList{field.NotFound(path, name)}
	}
	ref := shoot.Spec.Resources[at].ResourceRef
	var allowed []string
	for _, kind := range []string{KindSecret, KindConfigMap, KindWorkloadIdentity} {
		if len(kinds) == 0 || slices.Contains(kinds, kind) {
			allowed = append(allowed, kind)
		}
	}
	wanted := map[string]string{
		KindSecret: "v1", KindConfigMap: "v1", KindWorkloadIdentity: securityv1alpha1.SchemeGroupVersion.String(),
	}
	if !slices.Contains(allowed, ref.Kind) || ref.APIVersion != wanted[ref.Kind] {
		return nil, field.ErrorList{field.NotSupported(path, ref.APIVersion+" "+ref.Kind, allowed)}
	}
	return &ref, nil
}

// Key is a required key of a Secret or ConfigMap.
type Key struct {
	Name string
	// Check returns an error if the value is invalid. nil accepts any value. The error must not contain the value, which may be confidential.
	Check func(value []byte) error
}

// SecretKeys validates the data of a Secret. Guideline: check that required keys exist and have the expected format.
func SecretKeys(secret *corev1.Secret, path *field.Path, keys ...Key) field.ErrorList {
	return checkKeys(func(key string) ([]byte, bool) { value, has := secret.Data[key]; return value, has }, path, keys)
}

// ConfigMapKeys validates the data of a ConfigMap like [SecretKeys].
func ConfigMapKeys(config *corev1.ConfigMap, path *field.Path, keys ...Key) field.ErrorList {
	return checkKeys(func(key string) ([]byte, bool) {
		if value, has := config.Data[key]; has {
			return []byte(value), true
		}
		value, has := config.BinaryData[key]
		return value, has
	}, path, keys)
}

func checkKeys(get func(string) ([]byte, bool), path *field.Path, keys []Key) field.ErrorList {
	var all field.ErrorList
	for _, key := range keys {
		value, has := get(key.Name)
		if !has || len(value) == 0 {
			all = append(all, field.Required(path.Key(key.Name), "the key is missing or empty"))
			continue
		}
		if key.Check == nil {
			continue
		}
		if err := key.Check(value); err != nil {
			all = append(all, field.Invalid(path.Key(key.Name), field.OmitValueType{}, err.Error()))
		}
	}
	return all
}

// Immutable checks that a Secret or ConfigMap is immutable. Guideline: referenced objects must be immutable if admission
// does not see their changes.
func Immutable(object client.Object, path *field.Path) field.ErrorList {
	var immutable *bool
	switch object := object.(type) {
	case *corev1.Secret:
		immutable = object.Immutable
	case *corev1.ConfigMap:
		immutable = object.Immutable
	default:
		return field.ErrorList{field.InternalError(path, fmt.Errorf("a %T is neither a Secret nor a ConfigMap", object))}
	}
	if immutable == nil || !*immutable {
		return field.ErrorList{field.Invalid(path, object.GetName(),
			"must be immutable: set immutable to true, and refer to another object to change it")}
	}
	return nil
}

// UsedBy returns the names of the Shoots that refer to a Secret, ConfigMap or WorkloadIdentity in their namespace and use
// an extension. Guideline: if referenced objects may change, admission validates changes of objects in use. The reader
// should be a cache of Shoots.
func UsedBy(
	ctx context.Context, reader client.Reader, kind string, object client.Object, uses func(*corev1beta1.Shoot) bool,
) ([]string, error) {
	var shoots corev1beta1.ShootList
	if err := reader.List(ctx, &shoots, client.InNamespace(object.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list the Shoots in namespace %s: %w", object.GetNamespace(), err)
	}
	var names []string
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		refers := slices.ContainsFunc(shoot.Spec.Resources, func(one corev1beta1.NamedResourceReference) bool {
			return one.ResourceRef.Kind == kind && one.ResourceRef.Name == object.GetName()
		})
		if refers && uses(shoot) {
			names = append(names, shoot.Name)
		}
	}
	return names, nil
}

// UsesProvider returns a function that reports whether a Shoot has an infrastructure of a type.
func UsesProvider(ofType string) func(*corev1beta1.Shoot) bool {
	return func(shoot *corev1beta1.Shoot) bool { return shoot.Spec.Provider.Type == ofType }
}

// UsesExtension returns a function that reports whether a Shoot has an Extension of a type.
func UsesExtension(ofType string) func(*corev1beta1.Shoot) bool {
	return func(shoot *corev1beta1.Shoot) bool {
		return slices.ContainsFunc(shoot.Spec.Extensions, func(one corev1beta1.Extension) bool {
			return one.Type == ofType && (one.Disabled == nil || !*one.Disabled)
		})
	}
}
