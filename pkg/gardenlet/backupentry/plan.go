// Package backupentry contains gardenlet's controller of BackupEntries, which makes extensions provide, migrate and
// delete the backups of control planes.
package backupentry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
)

// FlowName is the value of flow.LabelFlow on objects that the controller emits.
const FlowName = "backupentry"

// annotationPurpose on a BackupEntry is the purpose of its Shoot.
const annotationPurpose = "shoot.gardener.cloud/purpose"

// phase is the operation for an entry.
type phase int

const (
	// phaseNone is for entries of another Seed.
	phaseNone phase = iota
	phaseReconcile
	phaseRestore
	phaseMigrate
	phaseWait
	phaseDelete
)

// inputs are the inputs of the plan.
type inputs struct {
	owner     flow.Owner
	namespace string
	seed      string
	entry     *corev1beta1.BackupEntry
	bucket    *corev1beta1.BackupBucket
	config    *gardenletv1alpha1.BackupEntryController
	// credentials is a digest of the data of the Secret in the seed.
	credentials string
	asked       backup.Asked
	// saved is the state that the extension had in another seed, or nil. It is restored by two revisions. The first creates
	// the object with the state in its status, and the extension waits. The second requests the restoration once
	// stateApplied reports that the first is applied.
	saved        *corev1beta1.ExtensionResourceState
	stateApplied bool
	live         *backup.Extension
	now          time.Time
}

// SecretName returns the name of the Secret with the credentials in the seed.
func SecretName(entry string) string { return "entry-" + entry }

// keyOf returns the key of the bundle of an entry.
func keyOf(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "backupentry-" + name}
}

// phase returns the operation for the entry.
func (in inputs) phase() phase {
	wanted, present := ptr.Deref(in.entry.Spec.SeedName, ""), ptr.Deref(in.entry.Status.SeedName, "")
	operation := in.entry.Annotations[constants.AnnotationGardenerOperation]
	last := in.entry.Status.LastOperation
	migrated := last != nil && last.Type == corev1beta1.LastOperationTypeMigrate && last.State == corev1beta1.LastOperationStateSucceeded
	switch {
	case present == in.seed && wanted != in.seed:
		return phaseMigrate
	case wanted != in.seed, present != "" && present != in.seed:
		return phaseNone // the Seed that has the entry acts first
	case in.entry.DeletionTimestamp != nil && in.now.Before(in.deletedAt()):
		return phaseWait
	case in.entry.DeletionTimestamp != nil:
		return phaseDelete
	case operation == constants.OperationRestore:
		return phaseRestore
	case migrated:
		return phaseNone // the entry is restored on request
	}
	return phaseReconcile
}

// deletedAt returns when the backups are deleted: after the grace period, unless an annotation forces it or the purpose
// has no grace period.
func (in inputs) deletedAt() time.Time {
	since := in.entry.DeletionTimestamp.Time
	force, err := strconv.ParseBool(in.entry.Annotations[constants.AnnotationBackupEntryForceDeletion])
	if err == nil && force || in.config == nil {
		return since
	}
	purposes, purpose := in.config.DeletionGracePeriodShootPurposes, in.entry.Annotations[annotationPurpose]
	if len(purposes) > 0 && purpose != "" && !slices.Contains(purposes, corev1beta1.ShootPurpose(purpose)) {
		return since
	}
	return since.Add(time.Duration(ptr.Deref(in.config.DeletionGracePeriodHours, 0)) * time.Hour)
}

// bucketNotReady returns why the bucket of the entry is not ready, or an empty string.
func bucketNotReady(bucket *corev1beta1.BackupBucket) string {
	last := bucket.Status.LastOperation
	switch {
	case bucket.Status.LastError != nil:
		return fmt.Sprintf("BackupBucket %s: %s", bucket.Name, bucket.Status.LastError.Description)
	case bucket.Status.ObservedGeneration != bucket.Generation, last == nil, last.State != corev1beta1.LastOperationStateSucceeded:
		return fmt.Sprintf("BackupBucket %s is not ready", bucket.Name)
	}
	return ""
}

// savedFor returns the state that the extension of an entry has saved, or nil.
func savedFor(entry *corev1beta1.BackupEntry, state *corev1beta1.ShootState) *corev1beta1.ExtensionResourceState {
	for i, saved := range state.Spec.Extensions {
		if saved.Kind == "BackupEntry" && ptr.Deref(saved.Name, "") == entry.Name && saved.State != nil && len(saved.State.Raw) > 0 {
			return &state.Spec.Extensions[i]
		}
	}
	return nil
}

// object returns the extension object, without a requested operation.
func (in inputs) object() *extensionsv1alpha1.BackupEntry {
	spec := in.bucket.Spec
	object := &extensionsv1alpha1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Name: in.entry.Name, Annotations: map[string]string{flow.AnnotationOwner: in.owner.String()}},
		Spec: extensionsv1alpha1.BackupEntrySpec{
			DefaultSpec:                extensionsv1alpha1.DefaultSpec{Type: spec.Provider.Type, ProviderConfig: spec.ProviderConfig},
			BackupBucketProviderStatus: in.bucket.Status.ProviderStatus, Region: spec.Provider.Region, BucketName: in.entry.Spec.BucketName,
			SecretRef: corev1.SecretReference{Namespace: in.namespace, Name: SecretName(in.entry.Name)},
		},
	}
	if in.operation() == constants.OperationWaitForState {
		object.Status.State, object.Status.Resources = in.saved.State, in.saved.Resources
	}
	return object
}

// statusOnCreation selects the object whose status is applied on creation, if there is one.
func (in inputs) statusOnCreation() []resourcesv1alpha1.ObjectSelector {
	if in.operation() != constants.OperationWaitForState {
		return nil
	}
	return []resourcesv1alpha1.ObjectSelector{{Group: extensionsv1alpha1.SchemeGroupVersion.Group, Kind: "BackupEntry", Name: in.entry.Name}}
}

// operation returns the operation that the extension should run.
func (in inputs) operation() string {
	switch in.phase() {
	case phaseMigrate:
		return constants.OperationMigrate
	case phaseRestore:
		if in.saved != nil && !in.stateApplied && !in.asked.For(constants.OperationRestore) {
			return constants.OperationWaitForState
		}
		return constants.OperationRestore
	}
	return constants.OperationReconcile
}

// migrated reports whether the extension has completed its part of a migration.
func (in inputs) migrated() bool {
	if in.live == nil || in.live.Status.LastOperation == nil {
		return false
	}
	return in.live.Status.LastOperation.Type == corev1beta1.LastOperationTypeMigrate && in.live.Ready(in.asked) == ""
}

// plan returns the plan for an entry and the request to the extension. exists reports whether the bundle exists. It is a pure function.
func (in inputs) plan(
	exists bool, bundle func(flow.Key, *extensionsv1alpha1.BackupEntry, string, backup.Asked) flow.Bundle,
) (flow.Plan, backup.Asked, error) {
	key := keyOf(in.namespace, in.entry.Name)
	phase := in.phase()
	gone := flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: key, Confirm: true}}}
	switch {
	case phase == phaseDelete, phase == phaseMigrate && (in.migrated() || !exists || in.live != nil && in.live.Deleting):
		return gone, in.asked, nil
	case phase == phaseWait:
		grace := flow.Wait{Name: "grace", Reason: "the backups are retained for the grace period", Holds: []flow.Key{key}}
		return flow.Plan{Deleting: true, Next: in.deletedAt(), Waits: []flow.Wait{grace}}, in.asked, nil
	}
	object := in.object()
	text, err := json.Marshal(object.Spec)
	if err != nil {
		return flow.Plan{}, in.asked, fmt.Errorf("encode the BackupEntry: %w", err)
	}
	// After a restoration or migration, the operation becomes reconcile again.
	digest := backup.DigestFor(in.operation(), text, []byte(in.credentials))
	asked, next := backup.Ask(in.asked, digest, in.live, 0, in.now)
	planned := bundle(key, object, in.operation(), asked)
	planned.Spec.StatusOnCreation = in.statusOnCreation()
	return flow.Plan{Bundles: []flow.Bundle{planned}, Next: next}, asked, nil
}
