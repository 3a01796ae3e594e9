package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// ValidateBackupBucket checks a BackupBucket.
func ValidateBackupBucket(bucket *v1beta1.BackupBucket) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&bucket.ObjectMeta, false, labelName, field.NewPath("metadata"))
	path, provider := field.NewPath("spec"), field.NewPath("spec", "provider")
	errs = append(errs, required(bucket.Spec.Provider.Type, provider.Child("type"))...)
	errs = append(errs, required(bucket.Spec.Provider.Region, provider.Child("region"))...)
	errs = append(errs, credentials(bucket.Spec.CredentialsRef, path.Child("credentialsRef"))...)
	return append(errs, validateResponsible(bucket.Spec.SeedName, bucket.Spec.ShootRef, path)...)
}

// ValidateBackupBucketUpdate checks a BackupBucket that replaces another.
func ValidateBackupBucketUpdate(bucket, old *v1beta1.BackupBucket) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&bucket.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, immutable(bucket.Spec.Provider, old.Spec.Provider, path.Child("provider"))...)
	errs = append(errs, immutable(bucket.Spec.SeedName, old.Spec.SeedName, path.Child("seedName"))...)
	errs = append(errs, immutable(bucket.Spec.ShootRef, old.Spec.ShootRef, path.Child("shootRef"))...)
	return append(errs, ValidateBackupBucket(bucket)...)
}

// validateResponsible checks that either a Seed or a self-hosted Shoot is responsible for an object.
func validateResponsible(seedName *string, shoot *corev1.ObjectReference, path *field.Path) field.ErrorList {
	errs := notEmpty(seedName, path.Child("seedName"))
	switch {
	case seedName == nil && shoot == nil:
		errs = append(errs, field.Required(path.Child("seedName"), "either seedName or shootRef is required"))
	case seedName != nil && shoot != nil:
		errs = append(errs, field.Forbidden(path.Child("shootRef"), "must not be set together with seedName"))
	}
	if shoot == nil {
		return errs
	}
	at := path.Child("shootRef")
	errs = append(errs, referencedType(shoot.APIVersion, shoot.Kind, at, rules.Shoot)...)
	errs = append(errs, objectName(shoot.Name, at.Child("name"))...)
	return append(errs, namespaceName(shoot.Namespace, at.Child("namespace"))...)
}
