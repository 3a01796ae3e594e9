package etcd

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/objectstore"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

const (
	// directoryBackup has the credentials of the store, and directoryBuckets the buckets of the provider local.
	directoryBackup  = "/var/etcd-backup"
	directoryBuckets = "/var/etcd-buckets"
	// defaultHostPath is the directory of buckets on nodes, unless the Secret has another one.
	defaultHostPath = "/etc/gardener/local-backupbuckets"
	// keyHostPath of the Secret of a store is the directory of buckets on nodes. keyBucket is the name of the bucket.
	keyHostPath, keyBucket = "hostPath", "bucketName"
	volumeBackup           = "etcd-backup"
	volumeBuckets          = "etcd-buckets"
	// defaultDeltaPeriod and defaultFullSchedule are those of etcd-druid.
	defaultDeltaPeriod  = 5 * time.Minute
	defaultFullSchedule = "0 0 * * *"
	// defaultMaxFull is the number of full snapshots that the policy LimitBased keeps by default.
	defaultMaxFull = 7
)

// StoreSecret is what the operator reads from the Secret of a store. It contains no credentials.
type StoreSecret struct {
	// Missing is why it could not be read, empty if it was.
	Missing string
	// HostPath is the directory of buckets on nodes, empty for a store with the API of S3. Bucket is the name of the bucket, if it has one.
	HostPath, Bucket string
}

// storeSecretOf returns what the operator uses of the Secret of a store.
func storeSecretOf(data map[string][]byte) StoreSecret {
	s := StoreSecret{Bucket: string(data[keyBucket])}
	if len(data[objectstore.KeyAccessKeyID]) == 0 {
		s.HostPath = cmp.Or(string(data[keyHostPath]), defaultHostPath)
	}
	return s
}

// store returns the store of an Etcd with backups; nil if it has none.
func (in Inputs) store() *druidv1alpha1.StoreSpec { return in.Etcd.Spec.Backup.Store }

// locationOf returns where the members or Jobs find a store. Its Secret is mounted at a directory.
func locationOf(store *druidv1alpha1.StoreSpec, secret StoreSecret, credentials, buckets string) objectstore.Location {
	location := objectstore.Location{
		Provider: ptr.Deref(store.Provider, ""), Container: cmp.Or(ptr.Deref(store.Container, ""), secret.Bucket), Prefix: store.Prefix,
	}
	if store.SecretRef != nil {
		location.CredentialsDirectory = credentials
	}
	if onNode(store, secret) {
		location.Directory = buckets
	}
	return location
}

// onNode reports whether a store is a directory of the node.
func onNode(store *druidv1alpha1.StoreSpec, secret StoreSecret) bool {
	return objectstore.InDirectory(ptr.Deref(store.Provider, "")) && (store.SecretRef == nil || secret.HostPath != "")
}

// memberBackup returns the backup settings of members; nil without backups.
func (in Inputs) memberBackup() *config.Backup {
	store, spec := in.store(), in.Etcd.Spec.Backup
	if store == nil {
		return nil
	}
	b := &config.Backup{
		Store:            locationOf(store, in.StoreSecret, directoryBackup, directoryBuckets),
		FullSchedule:     ptr.Deref(spec.FullSnapshotSchedule, defaultFullSchedule),
		DeltaPeriod:      metav1.Duration{Duration: in.deltaPeriod()},
		Compression:      "none",
		CollectionPeriod: ptr.Deref(spec.GarbageCollectionPeriod, metav1.Duration{Duration: 12 * time.Hour}),
		DeltaRetention:   ptr.Deref(spec.DeltaSnapshotRetentionPeriod, metav1.Duration{}),
		Timeout:          ptr.Deref(spec.ETCDSnapshotTimeout, metav1.Duration{}),
		Port:             int(in.backupPort()),
	}
	if spec.DeltaSnapshotMemoryLimit != nil {
		b.DeltaLimit = spec.DeltaSnapshotMemoryLimit.Value()
	}
	if compression := spec.Compression; compression != nil && ptr.Deref(compression.Enabled, false) {
		b.Compression = string(ptr.Deref(compression.Policy, druidv1alpha1.GzipCompression))
	}
	if ptr.Deref(spec.GarbageCollectionPolicy, "") == druidv1alpha1.GarbageCollectionPolicyLimitBased {
		b.MaxFull = int(ptr.Deref(spec.MaxBackupsLimitBasedGC, defaultMaxFull))
	}
	return b
}

func (in Inputs) deltaPeriod() time.Duration {
	if period := in.Etcd.Spec.Backup.DeltaSnapshotPeriod; period != nil && period.Duration > 0 {
		return period.Duration
	}
	return defaultDeltaPeriod
}

// storeVolumes returns the volumes and mounts with a store.
func storeVolumes(store *druidv1alpha1.StoreSpec, secret StoreSecret, prefix, credentials, buckets string) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	if store == nil {
		return nil, nil
	}
	if store.SecretRef != nil {
		volumes = append(volumes, corev1.Volume{Name: prefix + volumeBackup, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: store.SecretRef.Name, DefaultMode: ptr.To[int32](0o440)},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: prefix + volumeBackup, MountPath: credentials, ReadOnly: true})
	}
	if onNode(store, secret) {
		// The extension creates the directory of the bucket. Other buckets are not mounted.
		location := locationOf(store, secret, credentials, buckets)
		volumes = append(volumes, corev1.Volume{Name: prefix + volumeBuckets, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{
				Path: path.Join(cmp.Or(secret.HostPath, defaultHostPath), location.Container), Type: ptr.To(corev1.HostPathDirectory),
			},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: prefix + volumeBuckets, MountPath: path.Join(buckets, location.Container)})
	}
	return volumes, mounts
}

// invalidBackup describes why the backup settings cannot be applied.
func (in Inputs) invalidBackup() []string {
	var problems []string
	add := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	spec, store := in.Etcd.Spec.Backup, in.store()
	if store == nil {
		return nil
	}
	if err := objectstore.Supported(ptr.Deref(store.Provider, "")); err != nil {
		add("spec.backup.store: %v", err)
	}
	if store.Prefix == "" {
		add("spec.backup.store.prefix is missing")
	}
	if in.StoreSecret.Missing != "" {
		add("spec.backup.store.secretRef: %s", in.StoreSecret.Missing)
	} else if locationOf(store, in.StoreSecret, "", "").Container == "" {
		add("spec.backup.store.container is missing, and the Secret has no key %s", keyBucket)
	}
	if text := spec.FullSnapshotSchedule; text != nil {
		if _, err := cron.ParseStandard(*text); err != nil {
			add("spec.backup.fullSnapshotSchedule is not a cron expression with five fields: %v", err)
		}
	}
	if limit := spec.MaxBackupsLimitBasedGC; limit != nil && *limit < 1 {
		add("spec.backup.maxBackupsLimitBasedGC must be at least 1")
	}
	if ptr.Deref(spec.EnableProfiling, false) {
		add("spec.backup.enableProfiling is not supported: remove it")
	}
	return problems
}

// snapshotLeases returns the Leases in which members describe the last snapshots.
func (in Inputs) snapshotLeases() []*coordinationv1.Lease {
	if in.store() == nil {
		return nil
	}
	var wanted []*coordinationv1.Lease
	for _, name := range []string{lease.FullName(in.Etcd.Name), lease.DeltaName(in.Etcd.Name)} {
		wanted = append(wanted, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Etcd.Namespace, Name: name, Labels: labelsOf(in.Etcd.Name, lease.ComponentSnapshot, name), OwnerReferences: ownersOf(in.Etcd),
		}})
	}
	return wanted
}

// Reasons of the condition BackupReady.
const (
	reasonBackupSucceeded = "BackupSucceeded"
	reasonBackupFailed    = "BackupFailed"
	reasonBackupPending   = "BackupPending"
)

// backupDeadlines returns when the backups are overdue: twice the time between two full and between two delta snapshots after the
// last ones, or after the Lease was created.
func (in Inputs) backupDeadlines() (full, delta time.Time) {
	deadline := func(of lease.Snapshot, period time.Duration) time.Time {
		since := of.Renewed
		if since.IsZero() {
			since = of.Created
		}
		return since.Add(2 * period)
	}
	since := in.FullSnapshot.Renewed
	if since.IsZero() {
		since = in.FullSnapshot.Created
	}
	if schedule, err := cron.ParseStandard(ptr.Deref(in.Etcd.Spec.Backup.FullSnapshotSchedule, defaultFullSchedule)); err == nil {
		first := schedule.Next(since.UTC())
		full = schedule.Next(first)
	}
	return full, deadline(in.DeltaSnapshot, in.deltaPeriod())
}

// backupReady returns the condition BackupReady.
func (in Inputs) backupReady() statement {
	full, delta := in.FullSnapshot, in.DeltaSnapshot
	if in.Etcd.Spec.Replicas == 0 {
		return statement{druidv1alpha1.ConditionUnknown, reasonNotChecked, "The Etcd has 0 replicas."}
	}
	fullDue, deltaDue := in.backupDeadlines()
	overdue := !in.Now.Before(deltaDue) || !fullDue.IsZero() && !in.Now.Before(fullDue)
	var details []string
	if full.Renewed.IsZero() {
		details = append(details, "no full snapshot was stored yet")
	} else {
		details = append(details, "the last full snapshot is of "+full.Renewed.UTC().Format(time.RFC3339))
	}
	switch {
	case overdue && delta.Renewed.IsZero():
		details = append(details, "no changes were stored yet")
	case overdue:
		details = append(details, "changes are stored up to "+delta.Renewed.UTC().Format(time.RFC3339))
	}
	if failed := cmp.Or(delta.Error, full.Error); failed != "" {
		details = append(details, "the last error is: "+failed)
	}
	text := strings.Join(details, "; ") + "."
	switch {
	case overdue && full.Created.IsZero():
		return statement{druidv1alpha1.ConditionUnknown, reasonBackupPending, "Backups have not begun yet."}
	case overdue:
		return statement{druidv1alpha1.ConditionFalse, reasonBackupFailed, "Backups are overdue: " + text}
	case full.Renewed.IsZero() || delta.Renewed.IsZero():
		return statement{druidv1alpha1.ConditionUnknown, reasonBackupPending, "Backups have begun: " + text}
	}
	return statement{druidv1alpha1.ConditionTrue, reasonBackupSucceeded,
		fmt.Sprintf("Changes are stored at most %s late; %s", 2*in.deltaPeriod(), text)}
}

// nextBackupDeadline returns when the backups become overdue, zero if they are or if there are none.
func (in Inputs) nextBackupDeadline() time.Time {
	if in.store() == nil || in.Etcd.Spec.Replicas == 0 || in.FullSnapshot.Created.IsZero() {
		return time.Time{}
	}
	full, delta := in.backupDeadlines()
	var next time.Time
	for _, at := range []time.Time{full, delta} {
		if at.After(in.Now) {
			next = requeue.Earlier(next, at)
		}
	}
	return next
}
