package shoot

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/shoot/restoredgarden"
)

// moveEntry hands the BackupEntry over to the destination after the last snapshot, and takes it over there.
func (p *pass) moveEntry(ctx context.Context) error {
	in := p.in
	switch {
	case in.handsOver(p.Result.Plan):
		return p.changeEntry(ctx, in.Entry, func(entry *corev1beta1.BackupEntry) { entry.Spec.SeedName = in.Shoot.Spec.SeedName })
	case in.Phase == phaseRestore && in.NamespaceExists && in.Entry != nil:
		return p.takeEntry(ctx, in)
	case in.Phase != phaseRestore && in.Move.Source != nil && !in.Deleting && in.Move.BackedUp:
		return p.deleteSource(ctx, in.Move.Source)
	}
	return nil
}

// takeEntry takes the BackupEntry over into the bucket of this Seed. Before that, another BackupEntry gives access to the previous bucket.
func (p *pass) takeEntry(ctx context.Context, in Inputs) error {
	entry, restore := in.Entry, func(entry *corev1beta1.BackupEntry) {
		entry.Spec.SeedName, entry.Spec.BucketName = ptr.To(in.Seed.Name), string(in.Seed.UID)
		metav1.SetMetaDataAnnotation(&entry.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationRestore)
	}
	last := entry.Status.LastOperation
	switch {
	case entry.Spec.BucketName == string(in.Seed.UID):
		given := ptr.Deref(entry.Spec.SeedName, "") != in.Seed.Name || last != nil && last.Type == corev1beta1.LastOperationTypeMigrate
		if !given || entry.Annotations[constants.AnnotationGardenerOperation] == constants.OperationRestore {
			return nil
		}
		return p.changeEntry(ctx, entry, restore)
	case in.Move.Source == nil:
		source := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{
			Namespace: entry.Namespace, Name: in.sourceEntry(), OwnerReferences: entry.OwnerReferences, Annotations: maps.Clone(entry.Annotations),
		}, Spec: corev1beta1.BackupEntrySpec{BucketName: entry.Spec.BucketName, SeedName: ptr.To(in.Seed.Name)}}
		delete(source.Annotations, constants.AnnotationGardenerOperation)
		if err := client.IgnoreAlreadyExists(p.garden.Create(ctx, source, client.FieldOwner(fieldManager))); err != nil {
			return fmt.Errorf("create BackupEntry %s/%s for the previous backups: %w", source.Namespace, source.Name, err)
		}
		return nil
	case in.unknownSource() != "":
		return nil // its controller reports the progress
	}
	return p.changeEntry(ctx, entry, restore)
}

// changeEntry writes a change of a BackupEntry, unless it has changed since it was read.
func (p *pass) changeEntry(ctx context.Context, entry *corev1beta1.BackupEntry, change func(*corev1beta1.BackupEntry)) error {
	changed := entry.DeepCopy()
	change(changed)
	err := p.garden.Patch(ctx, changed, client.MergeFromWithOptions(entry, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager))
	if err != nil {
		return fmt.Errorf("move BackupEntry %s/%s: %w", entry.Namespace, entry.Name, err)
	}
	return nil
}

// deleteSource deletes the previous backups. Those in the bucket of this Seed are complete and current.
func (p *pass) deleteSource(ctx context.Context, source *corev1beta1.BackupEntry) error {
	if source.DeletionTimestamp != nil {
		return nil
	}
	err := p.changeEntry(ctx, source, func(entry *corev1beta1.BackupEntry) {
		metav1.SetMetaDataAnnotation(&entry.ObjectMeta, constants.AnnotationBackupEntryForceDeletion, "true")
	})
	if err == nil {
		err = client.IgnoreNotFound(p.garden.Delete(ctx, source, client.Preconditions{UID: &source.UID}))
	}
	if err != nil {
		return fmt.Errorf("delete the previous backups: %w", err)
	}
	return nil
}

// leave finishes a move on the source once nothing of the control plane is left there: the destination is responsible from then on.
func (p *pass) leave(ctx context.Context, succeeded bool) error {
	r, shoot, in := p.reconciler, p.shoot, p.in
	if !in.emitted(bundleResourceManager) && !in.emitted(bundleAPIServer) {
		// No resource-manager can delete objects in the cluster any more.
		if err := r.finalizeContents(ctx, in); err != nil {
			return err
		}
	}
	if len(in.Emitted) > 0 || !succeeded || in.NamespaceExists || in.NamespaceDeleting || len(p.Result.Plan.Waits) > 0 {
		return nil // watches report when they are deleted
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.GardenNamespace, in.Namespace)
	if err != nil || len(left) > 0 {
		return err
	}
	if err := flow.DeleteManifests(ctx, r.uncached, r.seed, in.GardenNamespace, in.Owner.Labels()); err != nil {
		return err
	}
	// The binding must not have been set back meanwhile, so the write fails if the Shoot has changed.
	before := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	status := &shoot.Status
	status.SeedName, status.LastErrors, status.RetryCycleStartTime = shoot.Spec.SeedName, nil, nil
	status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: nameOf(corev1beta1.LastOperationTypeMigrate) + " finished", LastUpdateTime: metav1.NewTime(in.Now),
	}
	if err := r.garden.Status().Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("hand Shoot %s/%s over to Seed %s: %w", shoot.Namespace, shoot.Name, ptr.Deref(shoot.Spec.SeedName, ""), err)
	}
	r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventPrepared, actionMigrate, "The control plane has left the Seed %s", in.Seed.Name)
	r.forget(in)
	r.written.Remember(shoot) // until the cache shows it, this gardenlet must not act on the Shoot any more
	return r.remember(ctx, shoot, restoredgarden.Left)
}

// errNoEntry says that a control plane that arrives has no BackupEntry.
var errNoEntry = errors.New("the BackupEntry of the Shoot does not exist, so its backups cannot be restored: restore the BackupEntry, or give up the cluster " +
	"as described in docs/control-plane-migration.md")
