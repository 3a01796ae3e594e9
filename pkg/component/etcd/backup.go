package etcd

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
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
	// Compaction is the number of changes after which they are merged; 0 for never.
	Compaction int64
	// Restore makes a cluster that was never formed begin with the latest backups, or wait for them.
	Restore bool
	// Snapshot requests a full snapshot, once for each value; empty for none. See [FinalSnapshot].
	Snapshot string
}

// FinalSnapshot returns the request for the last snapshot of a cluster. It is taken once for each token.
func FinalSnapshot(token string) string { return "final/" + token }

// annotations returns the annotations of the Etcd about its backups.
func (b *Backup) annotations() map[string]string {
	annotations := map[string]string{}
	if b != nil && b.Restore {
		annotations[annotationRestore] = "latest"
	}
	if b != nil && b.Snapshot != "" {
		annotations[annotationSnapshot] = b.Snapshot
	}
	return annotations
}

// Annotations of an Etcd about its backups.
const (
	annotationRestore  = "druid.gardener.cloud/restore-from-backup"
	annotationSnapshot = "druid.gardener.cloud/take-snapshot"
)

// SnapshotHealth returns the health check of an Etcd for which a snapshot is requested. It is healthy once the snapshot is stored.
func SnapshotHealth(request string) resourcesv1alpha1.HealthCheck {
	taken := fmt.Sprintf("has(status.conditions) && status.conditions.exists(c, c.type == 'SnapshotTaken' && c.status == 'True' && c.message == %q)", request)
	return resourcesv1alpha1.HealthCheck{
		Group: druidv1alpha1.GroupName, Kind: "Etcd", Healthy: taken, Progressing: "!(" + taken + ")",
		Message: "has(status.conditions) && status.conditions.exists(c, c.type == 'SnapshotTaken') ? " +
			"status.conditions.filter(c, c.type == 'SnapshotTaken')[0].message : 'the requested snapshot is not stored yet'",
	}
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
	if v.Backup.Compaction > 0 {
		spec.SnapshotCompaction = &druidv1alpha1.SnapshotCompactionSpec{EventsThreshold: ptr.To(v.Backup.Compaction)}
	}
	spec.Compression = &druidv1alpha1.CompressionSpec{Enabled: ptr.To(true), Policy: &gzip}
	return spec
}
