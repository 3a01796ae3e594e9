// Package store stores backups in directories or in stores with the API of S3.
package store

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store contains buckets with the backups of control planes.
type Store interface {
	// Create creates a bucket if it does not exist.
	Create(ctx context.Context, bucket string) error
	// Delete deletes a bucket with its contents, if it exists.
	Delete(ctx context.Context, bucket string) error
	// DeleteEntry deletes the contents of an entry in a bucket.
	DeleteEntry(ctx context.Context, bucket, entry string) error
}

// Stores selects the store of a bucket.
type Stores struct {
	// Uncached reads the Secrets to which BackupBuckets and BackupEntries refer.
	Uncached client.Reader
	// Directory is the store for credentials without an access key.
	Directory Directory
}

// Of returns the store for credentials and the declared region of a bucket, and the credentials with the region that is used.
// Errors do not contain the credentials.
func (s Stores) Of(ctx context.Context, reference corev1.SecretReference, region string) (Store, map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := s.Uncached.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, secret); err != nil {
		return nil, nil, fmt.Errorf("read the credentials of the bucket: %w", err)
	}
	if !InS3(secret.Data) {
		return s.Directory, secret.Data, nil
	}
	store, err := newS3(secret.Data, region)
	if err != nil {
		return nil, nil, fmt.Errorf("use Secret %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	credentials := maps.Clone(secret.Data)
	credentials[KeyRegion] = []byte(store.region)
	return store, credentials, nil
}

// InS3 reports whether credentials are for a store with the API of S3.
func InS3(credentials map[string][]byte) bool { return len(credentials[KeyAccessKeyID]) > 0 }
