package seed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ensureBucket creates or updates the BackupBucket of the Seed in the garden as soon as the required extensions can be
// installed.
func (p *pass) ensureBucket(ctx context.Context) error {
	r, in := p.reconciler, p.in
	backup := in.Seed.Spec.Backup
	if in.Deleting || backup == nil || in.Extensions == nil || in.checkVersion() != "" || len(in.missingExtensions()) > 0 {
		return nil
	}
	wanted := bucketOf(in.Seed)
	if in.Bucket == nil {
		if err := client.IgnoreAlreadyExists(r.garden.Create(ctx, wanted)); err != nil {
			return fmt.Errorf("create BackupBucket %s: %w", wanted.Name, err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(in.Bucket.Spec, wanted.Spec) {
		return nil
	}
	before := client.MergeFrom(in.Bucket.DeepCopy())
	in.Bucket.Spec = wanted.Spec
	if err := r.garden.Patch(ctx, in.Bucket, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("update BackupBucket %s: %w", wanted.Name, err)
	}
	return nil
}

// bucketOf returns the BackupBucket of a Seed.
func bucketOf(seed *corev1beta1.Seed) *corev1beta1.BackupBucket {
	backup := seed.Spec.Backup
	return &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: BucketName(seed), OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed")),
		}},
		Spec: corev1beta1.BackupBucketSpec{
			Provider:       corev1beta1.BackupBucketProvider{Type: backup.Provider, Region: ptr.Deref(backup.Region, seed.Spec.Provider.Region)},
			ProviderConfig: backup.ProviderConfig, SeedName: ptr.To(seed.Name), CredentialsRef: backup.CredentialsRef,
		},
	}
}
