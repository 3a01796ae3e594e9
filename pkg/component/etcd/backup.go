package etcd

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
)

// Settings of backups (Gardener).
const (
	deltaPeriod      = 5 * time.Minute
	deltaLimit       = "100Mi"
	collectionPeriod = 12 * time.Hour
)

// Backup defines where a cluster is backed up.
type Backup struct {
	// Provider is the type of the infrastructure that keeps the bucket.
	Provider string
	// Bucket is the name of the bucket, and Entry the name of the BackupEntry, which is the begin of the path in it.
	Bucket, Entry string
	// FullSchedule is when full snapshots are taken, as a cron expression.
	FullSchedule string
	// DeltaRetention is how long delta snapshots are kept that a full one replaces; nil for the default.
	DeltaRetention *metav1.Duration
}

// backup returns the settings of the backups.
func (v Values) backup() druidv1alpha1.BackupSpec {
	spec := druidv1alpha1.BackupSpec{Port: ptr.To[int32](portBackup), TLS: v.tls(v.CA, v.Server, v.Client)}
	if v.Backup == nil {
		return spec
	}
	policy, gzip := druidv1alpha1.GarbageCollectionPolicyExponential, druidv1alpha1.GzipCompression
	spec.Store = &druidv1alpha1.StoreSpec{
		Provider: ptr.To(v.Backup.Provider), Container: ptr.To(v.Backup.Bucket), Prefix: v.Backup.Entry + "/" + Name(v.Role),
		SecretRef: &corev1.SecretReference{Namespace: v.Namespace, Name: constants.SecretNameETCDBackup},
	}
	spec.FullSnapshotSchedule = ptr.To(v.Backup.FullSchedule)
	spec.DeltaSnapshotPeriod = &metav1.Duration{Duration: deltaPeriod}
	spec.DeltaSnapshotMemoryLimit = ptr.To(resource.MustParse(deltaLimit))
	spec.DeltaSnapshotRetentionPeriod = v.Backup.DeltaRetention
	spec.GarbageCollectionPolicy = &policy
	spec.GarbageCollectionPeriod = &metav1.Duration{Duration: collectionPeriod}
	spec.Compression = &druidv1alpha1.CompressionSpec{Enabled: ptr.To(true), Policy: &gzip}
	return spec
}
