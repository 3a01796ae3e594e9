package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ValidateBackupEntry checks a BackupEntry. Its name is composed of other names and may have any form that is valid in a
// URL.
func ValidateBackupEntry(entry *v1beta1.BackupEntry) field.ErrorList {
	anyName := func(string, bool) []string { return nil }
	errs := apivalidation.ValidateObjectMeta(&entry.ObjectMeta, true, anyName, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, required(entry.Spec.BucketName, path.Child("bucketName"))...)
	errs = append(errs, validateResponsible(entry.Spec.SeedName, entry.Spec.ShootRef, path)...)
	if shoot := entry.Spec.ShootRef; shoot != nil && shoot.Namespace != "" && shoot.Namespace != entry.Namespace {
		errs = append(errs, field.Invalid(path.Child("shootRef", "namespace"), shoot.Namespace, "must be the namespace of the BackupEntry"))
	}
	return errs
}

// ValidateBackupEntryUpdate checks a BackupEntry that replaces another.
func ValidateBackupEntryUpdate(entry, old *v1beta1.BackupEntry) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&entry.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateBackupEntry(entry)...)
}
