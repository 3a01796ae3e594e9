package garden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// The bundles of the backups of etcd.
const (
	bundleBackupBucket = "garden-backupbucket"
	bundleBackupEntry  = "garden-backupentry"
)

// declaredBackup returns spec.virtualCluster.etcd.main.backup, nil for none.
func (in Inputs) declaredBackup() *operatorv1alpha1.Backup {
	if settings := in.virtual().ETCD; settings != nil && settings.Main != nil {
		return settings.Main.Backup
	}
	return nil
}

// backupParts returns the parts with the bucket and the entry in it. Their objects are kept when the Garden is deleted or no longer declares
// backups, because extensions delete the backups together with them.
func (in Inputs) backupParts() []table.Part {
	absent := ""
	if in.declaredBackup() == nil {
		absent = "spec.virtualCluster.etcd.main.backup is not set"
	}
	return []table.Part{
		{
			Name: bundleBackupBucket, Absent: absent, Objects: in.backupBucket, Adjust: adjustBackup(corev1beta1.KindBackupBucket),
			Needs: []table.Need{table.Applied(bundleSystem, bundleExtensionKinds)}, DeletedAfter: []string{bundleBackupEntry},
		},
		{
			Name: bundleBackupEntry, Absent: absent, Objects: in.backupEntry, Unknown: in.unknownBucket(),
			Adjust: adjustBackup(corev1beta1.KindBackupEntry),
			Needs:  []table.Need{table.Healthy(bundleBackupBucket)}, DeletedAfter: []string{bundleEtcdMain},
		},
	}
}

// adjustBackup configures a bundle of a backup: each change triggers the extension, and only changes.
func adjustBackup(kind string) func(*flow.Bundle) {
	return func(bundle *flow.Bundle) {
		flow.ForExtension(kind)(bundle)
		keepObjects(bundle)
	}
}

// bucketName returns the name of the bucket: the given one without a path behind a slash, or one of its own for each Garden.
func (in Inputs) bucketName() string {
	if name := ptr.Deref(in.declaredBackup().BucketName, ""); name != "" {
		name, _, _ = strings.Cut(name, "/")
		return name
	}
	return "garden-" + string(in.Owner.UID)
}

// entryName returns the name of the BackupEntry, from which its extension knows the namespace of the Secret with the credentials.
func (in Inputs) entryName() string { return in.Namespace + "--" + string(in.Owner.UID) }

// backupRegion returns the region of the bucket.
func (in Inputs) backupRegion() (string, error) {
	region := cmp.Or(ptr.Deref(in.declaredBackup().Region, ""), ptr.Deref(in.Garden.Spec.RuntimeCluster.Provider.Region, ""))
	if region == "" {
		return "", errors.New("set spec.virtualCluster.etcd.main.backup.region or spec.runtimeCluster.provider.region: the bucket needs a region")
	}
	return region, nil
}

// backupMeta returns the metadata of an extension object, whose controller acts on each change.
func (in Inputs) backupMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"origin": identity},
		Annotations: map[string]string{constants.AnnotationGardenerOperation: constants.OperationReconcile},
	}
}

func (in Inputs) backupBucket() ([]client.Object, error) {
	backup := in.declaredBackup()
	region, err := in.backupRegion()
	return []client.Object{&extensionsv1alpha1.BackupBucket{
		ObjectMeta: in.backupMeta(in.bucketName()),
		Spec: extensionsv1alpha1.BackupBucketSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: backup.Provider, Class: ptr.To(classGarden), ProviderConfig: backup.ProviderConfig},
			Region:      region, SecretRef: corev1.SecretReference{Namespace: in.Namespace, Name: backup.SecretRef.Name},
		},
	}}, err
}

// backupEntry returns the entry of etcd in the bucket. Its credentials are those that the extension has generated for the bucket, or the given ones.
func (in Inputs) backupEntry() ([]client.Object, error) {
	backup := in.declaredBackup()
	region, err := in.backupRegion()
	credentials := corev1.SecretReference{Namespace: in.Namespace, Name: backup.SecretRef.Name}
	if generated := in.Bucket.Status.GeneratedSecretRef; generated != nil {
		credentials = *generated
	}
	return []client.Object{&extensionsv1alpha1.BackupEntry{
		ObjectMeta: in.backupMeta(in.entryName()),
		Spec: extensionsv1alpha1.BackupEntrySpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: backup.Provider, Class: ptr.To(classGarden), ProviderConfig: backup.ProviderConfig},
			Region:      region, BucketName: in.bucketName(), SecretRef: credentials, BackupBucketProviderStatus: in.Bucket.Status.ProviderStatus,
		},
	}}, err
}

// unknownBucket reports that the state of the bucket is not known yet, which has the credentials of the entry.
func (in Inputs) unknownBucket() string {
	if in.declaredBackup() == nil {
		return ""
	}
	bucket := in.Bucket
	if bucket == nil || bucket.Status.ObservedGeneration != bucket.Generation || bucket.Status.LastOperation == nil ||
		bucket.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded {
		return "BackupBucket " + in.bucketName() + " is not ready yet"
	}
	return ""
}

// backup returns where an etcd is backed up: the main one, if backups are declared.
func (in Inputs) backup(role etcd.Role) *etcd.Backup {
	declared := in.declaredBackup()
	if role != etcd.RoleMain || declared == nil {
		return nil
	}
	schedule := "30 1 * * *"
	if window, err := maintenance.Parse(in.virtual().Maintenance.TimeWindow.Begin, in.virtual().Maintenance.TimeWindow.End); err == nil {
		schedule = window.From(in.Owner.UID + "/full-snapshot").Schedule()
	}
	backup := &etcd.Backup{Provider: declared.Provider, Bucket: in.bucketName(), Entry: in.entryName(), FullSchedule: schedule}
	if config := in.Config.Controllers.Garden.ETCDConfig; config != nil {
		backup.DeltaRetention = config.DeltaSnapshotRetentionPeriod
	}
	return backup
}

// observeBucket reads the bucket. Its ManagedResource reports when it has changed.
func (r *reconciler) observeBucket(ctx context.Context, in *Inputs) error {
	if in.declaredBackup() == nil || in.Deleting || !in.emitted(bundleBackupBucket) {
		return nil
	}
	bucket := &extensionsv1alpha1.BackupBucket{}
	err := r.uncached.Get(ctx, client.ObjectKey{Name: in.bucketName()}, bucket)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read BackupBucket %s: %w", in.bucketName(), err)
	}
	in.Bucket = bucket
	return nil
}
