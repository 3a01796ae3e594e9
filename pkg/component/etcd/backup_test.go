package etcd

import (
	"testing"
	"time"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
)

// TestBackup checks the settings of the backups that an Etcd declares.
func TestBackup(t *testing.T) {
	values := Values{Namespace: "shoot--dev--one", Role: RoleMain}
	if got := values.backup(); got.Store != nil || got.FullSnapshotSchedule != nil || *got.Port != portBackup {
		t.Errorf("without backups: %+v", got)
	}
	values.Backup = &Backup{Provider: "aws", Bucket: "bucket", Entry: "entry", FullSchedule: "5 22 * * *"}
	got := values.backup()
	if store := got.Store; *store.Provider != "aws" || *store.Container != "bucket" || store.Prefix != "entry/etcd-main" || store.SecretRef.Name != "etcd-backup" {
		t.Errorf("the store is %+v", store)
	}
	if *got.FullSnapshotSchedule != "5 22 * * *" || got.DeltaSnapshotPeriod.Duration != 5*time.Minute || got.DeltaSnapshotMemoryLimit.String() != "100Mi" ||
		*got.GarbageCollectionPolicy != druidv1alpha1.GarbageCollectionPolicyExponential || got.GarbageCollectionPeriod.Duration != 12*time.Hour ||
		!*got.Compression.Enabled || *got.Compression.Policy != druidv1alpha1.GzipCompression {
		t.Errorf("the settings are %+v", got)
	}
}
