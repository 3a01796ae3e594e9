package validation

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// secretContents replaces the value of a field in errors.
const secretContents = "<secret contents redacted>"

// ValidateInternalSecret checks an InternalSecret by the rules for Secrets of Kubernetes.
func ValidateInternalSecret(secret *v1beta1.InternalSecret) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&secret.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	data, size := field.NewPath("data"), 0
	for _, key := range sortedKeys(secret.Data) {
		errs = append(errs, messages(validation.IsConfigMapKey(key), key, data.Key(key))...)
		size += len(secret.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(secret, data)...)
}

// ValidateInternalSecretUpdate checks an InternalSecret that replaces another.
func ValidateInternalSecretUpdate(secret, old *v1beta1.InternalSecret) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&secret.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(secret.Type, old.Type, field.NewPath("type"))...)
	if ptr.Deref(old.Immutable, false) {
		const why = "field is immutable when `immutable` is set"
		errs = append(errs, forbidden(!ptr.Deref(secret.Immutable, false), field.NewPath("immutable"), why)...)
		errs = append(errs, forbidden(!sameData(secret.Data, old.Data), field.NewPath("data"), why)...)
	}
	return append(errs, ValidateInternalSecret(secret)...)
}

func sameData(data, old map[string][]byte) bool {
	if len(data) != len(old) {
		return false
	}
	for key, value := range data {
		if before, found := old[key]; !found || string(before) != string(value) {
			return false
		}
	}
	return true
}

// validateSecretType checks that an InternalSecret has the keys that its type requires.
func validateSecretType(secret *v1beta1.InternalSecret, data *field.Path) field.ErrorList {
	missing := func(keys ...string) field.ErrorList {
		var errs field.ErrorList
		for _, key := range keys {
			if _, found := secret.Data[key]; !found {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
		return errs
	}
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		return required(secret.Annotations[corev1.ServiceAccountNameKey],
			field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey))
	case corev1.SecretTypeDockercfg:
		return validateJSON(secret.Data, corev1.DockerConfigKey, data)
	case corev1.SecretTypeDockerConfigJson:
		return validateJSON(secret.Data, corev1.DockerConfigJsonKey, data)
	case corev1.SecretTypeBasicAuth:
		user, password := missing(corev1.BasicAuthUsernameKey), missing(corev1.BasicAuthPasswordKey)
		if len(user) > 0 && len(password) > 0 {
			return append(user, password...)
		}
	case corev1.SecretTypeSSHAuth:
		return required(string(secret.Data[corev1.SSHAuthPrivateKey]), data.Key(corev1.SSHAuthPrivateKey))
	case corev1.SecretTypeTLS:
		return missing(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

func validateJSON(data map[string][]byte, key string, path *field.Path) field.ErrorList {
	content, found := data[key]
	if !found {
		return field.ErrorList{field.Required(path.Key(key), "")}
	}
	if json.Unmarshal(content, &map[string]any{}) != nil {
		return field.ErrorList{field.Invalid(path.Key(key), secretContents, "must be a JSON object")}
	}
	return nil
}
