package lease

import (
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// ComponentSnapshot is the value of LabelComponent on the Leases of snapshots.
const ComponentSnapshot = "etcd-snapshot-lease"

// FullName returns the name of the Lease that describes the last full snapshot.
func FullName(etcd string) string { return etcd + "-full-snap" }

// DeltaName returns the name of the Lease that describes the last delta snapshot.
func DeltaName(etcd string) string { return etcd + "-delta-snap" }

// Snapshot is the content of the Lease of a kind of snapshots. The holder of the Lease is the revision.
type Snapshot struct {
	// Revision is the revision up to which the store has all changes; 0 for none.
	Revision int64
	// Renewed is when this was the case; zero for never.
	Renewed time.Time
	// Created is when the Lease was created.
	Created time.Time
	// Cluster and Error are the annotations of these names.
	Cluster, Error string
}

// ReadSnapshot returns the content of the Lease of a kind of snapshots.
func ReadSnapshot(lease *coordinationv1.Lease) Snapshot {
	s := Snapshot{
		Created: lease.CreationTimestamp.Time,
		Cluster: lease.Annotations[AnnotationBackupCluster], Error: lease.Annotations[AnnotationBackupError],
	}
	if revision, err := strconv.ParseInt(ptr.Deref(lease.Spec.HolderIdentity, ""), 10, 64); err == nil {
		s.Revision = revision
	}
	if lease.Spec.RenewTime != nil {
		s.Renewed = lease.Spec.RenewTime.Time
	}
	return s
}
