package shoot

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// annotationPurpose on a BackupEntry is the purpose of its Shoot, on which the grace period of its deletion depends.
const annotationPurpose = "shoot.gardener.cloud/purpose"

// defaultCompaction is the number of changes after which backups are compacted (Gardener).
const defaultCompaction = 1_000_000

// backedUp reports whether the Seed declares backups.
func (in Inputs) backedUp() bool { return in.Seed != nil && in.Seed.Spec.Backup != nil }

// entryName returns the name of the BackupEntry of a Shoot. It never changes, and no other Shoot gets it.
func (in Inputs) entryName() string {
	uid := in.Shoot.Status.UID
	if uid == "" {
		uid = in.Shoot.UID
	}
	return in.Namespace + "--" + string(uid)
}

// entry returns the BackupEntry of the Shoot. The garbage collector of the garden deletes it after the Shoot.
func (in Inputs) entry() *corev1beta1.BackupEntry {
	owner := metav1.NewControllerRef(in.Shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	owner.BlockOwnerDeletion = ptr.To(false)
	return &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Shoot.Namespace, Name: in.entryName(), OwnerReferences: []metav1.OwnerReference{*owner},
			Annotations: map[string]string{annotationPurpose: string(ptr.Deref(in.Shoot.Spec.Purpose, corev1beta1.ShootPurposeEvaluation))},
		},
		Spec: corev1beta1.BackupEntrySpec{BucketName: string(in.Seed.UID), SeedName: ptr.To(in.Seed.Name)},
	}
}

// backup returns where the main etcd is backed up; nil without backups.
func (in Inputs) backup(role etcd.Role) *etcd.Backup {
	if role != etcd.RoleMain || !in.backedUp() || in.Entry == nil {
		return nil
	}
	backup := &etcd.Backup{
		Provider: in.Seed.Spec.Backup.Provider, Bucket: in.Entry.Spec.BucketName, Entry: in.Entry.Name, FullSchedule: in.fullSnapshots(),
	}
	backup.Restore = in.Phase != phaseStays || in.Move.Restoring
	if in.Phase == phaseMigrate {
		backup.Snapshot = etcd.FinalSnapshot(in.Move.Token)
	}
	if in.Config != nil && in.Config.ETCDConfig != nil {
		backup.DeltaRetention = in.Config.ETCDConfig.DeltaSnapshotRetentionPeriod
		if compaction := in.Config.ETCDConfig.BackupCompactionController; compaction != nil && ptr.Deref(compaction.EnableBackupCompaction, false) {
			backup.Compaction = ptr.Deref(compaction.EventsThreshold, defaultCompaction)
		}
	}
	return backup
}

// fullSnapshots returns the schedule of full snapshots: once a day at a time in the maintenance window that depends on the UID of the
// Shoot, and is another one than that of the defragmentation.
func (in Inputs) fullSnapshots() string {
	window, _ := maintenance.OfShoot(in.Shoot)
	return window.From(in.Owner.UID + "/full-snapshot").Schedule()
}

// unknownEntry reports that the backups of the main etcd are not prepared. A deletion needs no backups.
func (in Inputs) unknownEntry(role etcd.Role) string {
	if role != etcd.RoleMain || !in.backedUp() || in.Deleting {
		return ""
	}
	if why := in.unrestoredEntry(); why != "" {
		return why
	}
	return notReady("BackupEntry "+in.Shoot.Namespace+"/"+in.entryName(), in.Entry)
}

// notReady returns why a BackupEntry is not ready, empty if it is. The entry is nil if it does not exist.
func notReady(name string, entry *corev1beta1.BackupEntry) string {
	switch {
	case entry == nil:
		return name + " does not exist yet"
	case entry.Status.LastOperation == nil || entry.Status.ObservedGeneration != entry.Generation:
		return name + " is not ready yet"
	case entry.Status.LastError != nil:
		return name + ": " + entry.Status.LastError.Description
	case entry.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		return name + " is not ready yet"
	}
	return ""
}

// observeEntry reads the BackupEntry of the Shoot.
func (r *reconciler) observeEntry(ctx context.Context, in *Inputs) error {
	if !in.backedUp() {
		return nil
	}
	entry := &corev1beta1.BackupEntry{}
	err := r.garden.Get(ctx, client.ObjectKey{Namespace: in.Shoot.Namespace, Name: in.entryName()}, entry)
	if apierrors.IsNotFound(err) && in.Phase != phaseStays {
		// The cache contains only entries of this Seed. One that was handed over is not.
		err = r.states.GardenReader.Get(ctx, client.ObjectKey{Namespace: in.Shoot.Namespace, Name: in.entryName()}, entry)
	}
	if err == nil {
		in.Entry = entry
	}
	if err != nil && in.Phase == phaseRestore {
		return errors.Join(errNoEntry, err)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the BackupEntry of the Shoot: %w", err)
	}
	return nil
}

// ensureEntry creates the BackupEntry of the Shoot, or updates the purpose on it. Its extension needs the namespace of the control plane.
func (p *pass) ensureEntry(ctx context.Context) error {
	in := p.in
	if !in.backedUp() || in.Deleting || !in.NamespaceExists || in.NamespaceDeleting || in.Stopped {
		return nil
	}
	wanted := in.entry()
	if in.Entry == nil {
		if err := client.IgnoreAlreadyExists(p.garden.Create(ctx, wanted)); err != nil {
			return fmt.Errorf("create BackupEntry %s/%s: %w", wanted.Namespace, wanted.Name, err)
		}
		return nil
	}
	if in.Entry.Annotations[annotationPurpose] == wanted.Annotations[annotationPurpose] {
		return nil
	}
	changed := in.Entry.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, annotationPurpose, wanted.Annotations[annotationPurpose])
	if err := p.garden.Patch(ctx, changed, client.MergeFrom(in.Entry), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("set the purpose of BackupEntry %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return nil
}

// ofEntry maps a BackupEntry to its Shoot.
func ofEntry(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Shoot" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}}}
}

// entryChanged passes changes of BackupEntries on which the etcd of their Shoots, or the move of these, depends.
func entryChanged() predicate.Predicate {
	type decisive struct {
		problem, bucket, wanted, current string
		operation                        corev1beta1.LastOperationType
		asked, deleting                  bool
	}
	in := func(object client.Object) decisive {
		entry, is := object.(*corev1beta1.BackupEntry)
		if !is {
			return decisive{}
		}
		return decisive{
			problem: notReady("", entry), bucket: entry.Spec.BucketName, wanted: ptr.Deref(entry.Spec.SeedName, ""), current: ptr.Deref(entry.Status.SeedName, ""),
			operation: ptr.Deref(entry.Status.LastOperation, corev1beta1.LastOperation{}).Type,
			asked:     entry.Annotations[constants.AnnotationGardenerOperation] != "", deleting: entry.DeletionTimestamp != nil,
		}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return in(e.ObjectOld) != in(e.ObjectNew) }}
}
