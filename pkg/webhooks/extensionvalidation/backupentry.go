package extensionvalidation

import "k8s.io/apimachinery/pkg/util/validation/field"

type backupEntrySpec struct {
	Type       string          `json:"type"`
	Region     string          `json:"region"`
	SecretRef  secretReference `json:"secretRef"`
	BucketName string          `json:"bucketName"`
}

func checkBackupEntry(entry *object[backupEntrySpec]) field.ErrorList {
	errs := checkLocated(entry.Spec.Type, entry.Spec.Region, entry.Spec.SecretRef)
	return append(errs, required(text{specPath.Child("bucketName"), entry.Spec.BucketName})...)
}

// compareBackupEntries allows changes of region and bucket, because entries can be migrated between buckets.
func compareBackupEntries(spec, old *backupEntrySpec) field.ErrorList {
	return immutable(change{specPath.Child("type"), spec.Type, old.Type})
}
