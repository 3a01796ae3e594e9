package core

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

func backupBuckets() *registry.Kind[*gardencorev1beta1.BackupBucket] {
	type bucket = *gardencorev1beta1.BackupBucket
	operations := registry.Operations{Once: []string{constants.OperationReconcile}}
	return &registry.Kind[bucket]{
		Resource: resource("BackupBucket"),
		New:      func() bucket { return &gardencorev1beta1.BackupBucket{} },
		NewList:  func() runtime.Object { return &gardencorev1beta1.BackupBucketList{} },
		SelectableFields: func(b bucket) fields.Set {
			return withShootRef(fields.Set{"spec.seedName": text(b.Spec.SeedName)}, b.Spec.ShootRef)
		},
		IndexedField: "spec.seedName",
		Columns: []registry.Column[bucket]{
			{Name: "Provider", Description: "Type of the infrastructure.", Value: func(b bucket) any { return b.Spec.Provider.Type }},
			{Name: "Seed", Description: "Name of the Seed.", Value: func(b bucket) any { return cell.Text(b.Spec.SeedName) }},
			{
				Name: "Operation", Description: "State of the last operation.",
				Value: func(b bucket) any { return cell.State(b.Status.LastOperation) },
			},
			{
				Name: "Progress", Description: "Progress of the last operation.",
				Value: func(b bucket) any { return cell.Progress(b.Status.LastOperation) },
			},
		},
		Validate:       validation.ValidateBackupBucket,
		ValidateUpdate: validation.ValidateBackupBucketUpdate,
		CopyStatus:     func(to, from bucket) { to.Status = from.Status },
		GenerationChanges: func(updated, old bucket) bool {
			asked := operations.Requested(updated, old)
			return asked || differ(updated.Spec, old.Spec)
		},
	}
}

func backupEntries() *registry.Kind[*gardencorev1beta1.BackupEntry] {
	type entry = *gardencorev1beta1.BackupEntry
	operations := registry.Operations{
		Once: []string{constants.OperationReconcile, constants.OperationMigrate}, Kept: []string{constants.OperationRestore},
	}
	return &registry.Kind[entry]{
		Resource: resource("BackupEntry"),
		New:      func() entry { return &gardencorev1beta1.BackupEntry{} },
		NewList:  func() runtime.Object { return &gardencorev1beta1.BackupEntryList{} },
		SelectableFields: func(e entry) fields.Set {
			return withShootRef(fields.Set{"spec.seedName": text(e.Spec.SeedName), "spec.bucketName": e.Spec.BucketName}, e.Spec.ShootRef)
		},
		IndexedField: "spec.seedName",
		Columns: []registry.Column[entry]{
			{Name: "Bucket", Description: "Name of the BackupBucket.", Value: func(e entry) any { return e.Spec.BucketName }},
			{Name: "Seed", Description: "Name of the Seed.", Value: func(e entry) any { return cell.Text(e.Spec.SeedName) }},
			{Name: "Operation", Description: "State of the last operation.", Value: func(e entry) any { return cell.State(e.Status.LastOperation) }},
			{
				Name: "Progress", Description: "Progress of the last operation.",
				Value: func(e entry) any { return cell.Progress(e.Status.LastOperation) },
			},
		},
		Validate:       validation.ValidateBackupEntry,
		ValidateUpdate: validation.ValidateBackupEntryUpdate,
		CopyStatus:     func(to, from entry) { to.Status = from.Status },
		GenerationChanges: func(updated, old entry) bool {
			asked := operations.Requested(updated, old)
			return asked || differ(updated.Spec, old.Spec) || registry.TurnsTrue(updated, old, constants.AnnotationBackupEntryForceDeletion)
		},
		Canonicalize: func(e entry) { e.Labels = withSeedNames(e.Labels, e.Spec.SeedName, e.Status.SeedName) },
	}
}

// withShootRef adds the selectable fields of a reference to a self-hosted Shoot.
func withShootRef(set fields.Set, shoot *corev1.ObjectReference) fields.Set {
	if shoot == nil {
		shoot = &corev1.ObjectReference{}
	}
	maps.Copy(set, fields.Set{"spec.shootRef.name": shoot.Name, "spec.shootRef.namespace": shoot.Namespace})
	return set
}
