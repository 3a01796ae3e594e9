package etcd

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// ConditionTypeSnapshotTaken reports whether the snapshot was stored that an annotation requests. Its message is the value of the
// annotation once it was.
const ConditionTypeSnapshotTaken druidv1alpha1.ConditionType = "SnapshotTaken"

// Reasons of the condition SnapshotTaken.
const (
	reasonSnapshotStored  = "SnapshotStored"
	reasonSnapshotPending = "SnapshotPending"
	reasonSnapshotFailed  = "SnapshotFailed"
)

// wantedSnapshot returns the snapshot that members are requested to take, empty for none: the one that the annotation requests, or a
// full one if merging the changes since the last one would take longer.
func (in Inputs) wantedSnapshot() string {
	if in.store() == nil {
		return ""
	}
	if requested := in.Etcd.Annotations[AnnotationSnapshot]; requested != "" {
		return requested
	}
	settings := in.Etcd.Spec.Backup.SnapshotCompaction
	if settings == nil || in.DeltaSnapshot.Revision-in.FullSnapshot.Revision < ptr.Deref(settings.TriggerFullSnapshotThreshold, defaultFullThreshold) {
		return ""
	}
	return fmt.Sprintf("full/after-revision-%d", in.FullSnapshot.Revision)
}

// snapshotTaken returns the condition SnapshotTaken. It is not known without a request.
func (in Inputs) snapshotTaken() (statement, bool) {
	requested := in.Etcd.Annotations[AnnotationSnapshot]
	if requested == "" || in.store() == nil {
		return statement{}, false
	}
	if slices.ContainsFunc(in.Members, func(member lease.Member) bool { return member.SnapshotTaken == requested }) {
		return statement{druidv1alpha1.ConditionTrue, reasonSnapshotStored, requested}, true
	}
	failed := ""
	for _, member := range in.Members {
		failed = cmp.Or(failed, member.SnapshotError)
	}
	if failed != "" {
		return statement{druidv1alpha1.ConditionFalse, reasonSnapshotFailed, "The requested snapshot could not be stored and is tried again: " + failed}, true
	}
	return statement{druidv1alpha1.ConditionUnknown, reasonSnapshotPending, "The requested snapshot is not stored yet."}, true
}
