// Package backupbucketvalidator is an admission plugin of the garden's API. A WorkloadIdentity of a BackupBucket must be for the
// bucket's infrastructure.
package backupbucketvalidator

import (
	"context"
	"fmt"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "BackupBucketValidator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("backupbuckets"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validate)},
	},
}

func validate(ctx context.Context, _ *admission.Request, garden *admission.Garden, bucket, old *gardencorev1beta1.BackupBucket) error {
	reference := bucket.Spec.CredentialsRef
	if bucket.DeletionTimestamp != nil || old != nil && old.Spec.CredentialsRef != nil && reference != nil && *old.Spec.CredentialsRef == *reference {
		return nil
	}
	if err := garden.CheckIdentityType(ctx, reference, bucket.Spec.Provider.Type); err != nil {
		return fmt.Errorf("spec.credentialsRef: %w", err)
	}
	return nil
}
