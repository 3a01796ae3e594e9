// Package store keeps backups: in directories, or in stores with the interface of S3.
package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store has buckets with the backups of control planes.
type Store interface {
	// Create makes a bucket. One that exists stays.
	Create(ctx context.Context, bucket string) error
	// Delete deletes a bucket with all that is in it. One that is gone is deleted.
	Delete(ctx context.Context, bucket string) error
	// DeleteEntry deletes all that an entry has in a bucket.
	DeleteEntry(ctx context.Context, bucket, entry string) error
}

// Stores choose the store of a bucket.
type Stores struct {
	// Uncached reads the Secrets that BackupBuckets and BackupEntries refer to.
	Uncached client.Reader
	// Directory is used for credentials without an access key.
	Directory Directory
}

// Of returns the store that credentials are for, and the credentials. An error has nothing of them.
func (s Stores) Of(ctx context.Context, reference corev1.SecretReference) (Store, map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := s.Uncached.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, secret); err != nil {
		return nil, nil, fmt.Errorf("read the credentials of the bucket: %w", err)
	}
	if !InS3(secret.Data) {
		return s.Directory, secret.Data, nil
	}
	store, err := newS3(secret.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("use Secret %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	return store, secret.Data, nil
}

// InS3 reports whether credentials are for a store with the interface of S3.
func InS3(credentials map[string][]byte) bool { return len(credentials[KeyAccessKeyID]) > 0 }
