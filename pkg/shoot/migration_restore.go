package shoot

import (
	"reflect"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// bundleCopy is the bundle with the task that copies the backups from the bucket of the previous Seed.
const bundleCopy = "etcd-backup-copy"

// restored makes the parts with extension objects request restorations instead of reconciliations, in the same order.
func (in Inputs) restored(parts []table.Part) {
	for i := range parts {
		if !isOperation(parts[i].Name) || parts[i].Absent != "" {
			continue
		}
		adjust := parts[i].Adjust
		parts[i].Adjust = func(bundle *flow.Bundle) {
			if adjust != nil {
				adjust(bundle)
			}
			in.restore(bundle)
		}
	}
}

// restore requests the restoration of the extension objects of a bundle. Objects with a state are created with it, and the extension
// waits. Once this is applied, the restoration is requested. The times of the two requests differ, because an operation is sent only
// together with another change.
func (in Inputs) restore(bundle *flow.Bundle) {
	operation, at := constants.OperationRestore, in.Asked
	// A second restoration of machines would make those again that were deleted since the first one.
	again := bundle.Name == bundleWorker && in.hasManager() && in.Move.Machines.Restored
	if again {
		operation, at = constants.OperationReconcile, in.Asked.Add(time.Second)
	}
	for _, object := range bundle.Objects {
		extension, is := object.(extensionsv1alpha1.Object)
		if !is || in.stateExists(bundle.Name) || again {
			continue
		}
		if saved := in.savedState(extension); saved != nil {
			status := extension.GetExtensionStatus()
			status.State, status.Resources = saved.State, saved.Resources
			bundle.Spec.StatusOnCreation = append(bundle.Spec.StatusOnCreation, resourcesv1alpha1.ObjectSelector{
				Group: extensionsv1alpha1.SchemeGroupVersion.Group, Kind: kindOf(extension), Name: extension.GetName(),
			})
			operation, at = constants.OperationWaitForState, in.Asked.Add(-time.Second)
		}
	}
	for _, object := range bundle.Objects {
		if _, is := object.(extensionsv1alpha1.Object); is {
			flow.AskExtension(object, operation, at)
		}
	}
	if bundle.Choices == nil {
		bundle.Choices = map[string]string{}
	}
	bundle.Choices[choiceOperation] = operation
}

// stateExists reports whether the objects of a bundle exist with their state. Those of a bundle of another phase do.
func (in Inputs) stateExists(name string) bool {
	return in.emitted(name) && (in.Move.Asked[name] != constants.OperationWaitForState || in.Move.Applied[name])
}

// savedState returns the state of an extension object in the ShootState, or nil.
func (in Inputs) savedState(object extensionsv1alpha1.Object) *corev1beta1.ExtensionResourceState {
	purpose := ""
	if config, is := object.(*extensionsv1alpha1.OperatingSystemConfig); is {
		purpose = string(config.Spec.Purpose)
	}
	for i, saved := range in.Move.States {
		if saved.Kind == kindOf(object) && ptr.Deref(saved.Name, "") == object.GetName() && ptr.Deref(saved.Purpose, "") == purpose {
			return &in.Move.States[i]
		}
	}
	return nil
}

// kindOf returns the kind of an extension object.
func kindOf(object extensionsv1alpha1.Object) string { return reflect.TypeOf(object).Elem().Name() }

// sourceEntry returns the name of the BackupEntry with the previous backups.
func (in Inputs) sourceEntry() string { return constants.PrefixSourceBackupEntry + in.entryName() }

// copies reports whether the backups must be copied: they are, or were, in the bucket of another Seed.
func (in Inputs) copies() bool {
	return in.Phase == phaseRestore && in.backedUp() && (in.Move.Source != nil || in.Entry != nil && in.Entry.Spec.BucketName != string(in.Seed.UID))
}

// copyParts returns the part with the task that copies the backups.
func (in Inputs) copyParts() []table.Part {
	if !in.backedUp() {
		return nil
	}
	part := table.Part{
		Name: bundleCopy, Objects: in.copyTask, Unknown: table.Join(in.unknownSource(), in.unknownEntry(etcd.RoleMain)),
		Removed: true, DeletedAfter: []string{}, Adjust: func(bundle *flow.Bundle) {
			bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{etcd.CopyHealth()}
		},
	}
	if !in.copies() {
		part.Absent = "no backups are copied"
	}
	return []table.Part{part}
}

// copiedFor is the dependency of the main etcd on the copy of its backups.
func (in Inputs) copiedFor(role etcd.Role) []table.Need {
	if role != etcd.RoleMain || !in.copies() {
		return nil
	}
	return []table.Need{table.Healthy(bundleCopy)}
}

func (in Inputs) copyTask() ([]client.Object, error) {
	target := *in.backup(etcd.RoleMain)
	source := etcd.Backup{Provider: in.Move.SourceProvider, Bucket: in.Move.Source.Spec.BucketName, Entry: target.Entry}
	return []client.Object{etcd.CopyTask(etcd.Copy{Namespace: in.Namespace, Name: in.Shoot.Name, Source: source, Target: target})}, nil
}

// unknownSource reports that the previous backups are not accessible yet.
func (in Inputs) unknownSource() string {
	name := "BackupEntry " + in.Shoot.Namespace + "/" + in.sourceEntry()
	switch entry := in.Move.Source; {
	case entry == nil:
		return name + " does not exist yet"
	case entry.Spec.BucketName == string(in.Seed.UID), entry.DeletionTimestamp != nil,
		in.Entry != nil && in.Entry.Spec.BucketName != string(in.Seed.UID) && in.Entry.Spec.BucketName != entry.Spec.BucketName:
		return name + " is of an earlier move: it must be deleted first"
	case in.Move.SourceProvider == "":
		return "BackupBucket " + entry.Spec.BucketName + " of the previous Seed is not known"
	default:
		return notReady(name, entry)
	}
}

// unrestoredEntry reports that the BackupEntry still is that of the previous Seed.
func (in Inputs) unrestoredEntry() string {
	if in.Phase != phaseRestore || in.Entry == nil {
		return ""
	}
	last := in.Entry.Status.LastOperation
	if in.Entry.Spec.BucketName == string(in.Seed.UID) && (last == nil || last.Type != corev1beta1.LastOperationTypeMigrate) {
		return ""
	}
	return "BackupEntry " + in.Shoot.Namespace + "/" + in.entryName() + " is not restored in this Seed yet"
}
