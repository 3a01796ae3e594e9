package extensionvalidation

import "k8s.io/apimachinery/pkg/util/validation/field"

func checkBackupBucket(bucket *object[located]) field.ErrorList { return bucket.Spec.check() }

func compareBackupBuckets(spec, old *located) field.ErrorList { return spec.compare(old) }
