// Package lease defines how etcd members and the operator exchange state in the Leases of the members. A member renews
// its Lease while it is healthy, so that the operator need not contact members. Name, labels and holder are compatible
// with etcd-druid. Additional annotations contain the rest.
package lease

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// Labels of all objects of an Etcd, and their values.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelName      = "app.kubernetes.io/name"
	LabelComponent = "app.kubernetes.io/component"
	ManagedBy      = "etcd-druid"
	Component      = "etcd-member-lease"
)

// Annotations that a member writes on its Lease.
const (
	// AnnotationTLS is whether the member uses TLS for its peers: "true" or "false".
	AnnotationTLS = "member.etcd.gardener.cloud/tls-enabled"
	// AnnotationClientURL is the client URL of the member. Joining members send requests to it.
	AnnotationClientURL = "member.etcd.gardener.cloud/client-url"
	// AnnotationState is "<reason>: <message>" while the member knows why it cannot serve; absent otherwise.
	AnnotationState = "member.etcd.gardener.cloud/state"
	// AnnotationDefragmented is the last value of AnnotationDefragment that the member has processed.
	AnnotationDefragmented = "member.etcd.gardener.cloud/defragmented"
	// AnnotationDefragmentError is the error of that defragmentation; absent if it succeeded.
	AnnotationDefragmentError = "member.etcd.gardener.cloud/defragment-error"
)

// Annotations that members with backups write on their Lease, and on the Leases of snapshots.
const (
	// AnnotationFollows is "<ID of a cluster>/<number of an epoch>": the epoch of the backups that the cluster continues or replaces.
	AnnotationFollows = "member.etcd.gardener.cloud/follows-epoch"
	// AnnotationSnapshotTaken is the last value of AnnotationSnapshot for which the member has stored a snapshot.
	AnnotationSnapshotTaken = "member.etcd.gardener.cloud/snapshot-taken"
	// AnnotationSnapshotError is why a requested snapshot could not be stored; absent if it could. It is tried again.
	AnnotationSnapshotError = "member.etcd.gardener.cloud/snapshot-error"
	// AnnotationBackupCluster is the ID of the cluster whose snapshots the Lease of snapshots describes.
	AnnotationBackupCluster = "backup.etcd.gardener.cloud/cluster-id"
	// AnnotationBackupError is why snapshots cannot be taken; absent if they can.
	AnnotationBackupError = "backup.etcd.gardener.cloud/error"
)

// Annotations that the operator writes on the Lease of a member.
const (
	// AnnotationClusterID is the ID of the existing cluster. While it is set, no member creates another one.
	AnnotationClusterID = "member.etcd.gardener.cloud/cluster-id"
	// AnnotationAcceptedLoss is the ID of the cluster whose data loss a user has accepted. A new one may be created
	// instead.
	AnnotationAcceptedLoss = "member.etcd.gardener.cloud/accepted-data-loss"
	// AnnotationRestore is the ID of the cluster whose backups a new cluster begins with, or RestoreLatest.
	AnnotationRestore = "member.etcd.gardener.cloud/restore-from-backup"
	// AnnotationAcceptEmpty is the ID of a cluster that an empty one replaces although the store has its backups.
	AnnotationAcceptEmpty = "member.etcd.gardener.cloud/accept-empty-cluster"
	// AnnotationDefragment requests the member to defragment its database, once for each value.
	AnnotationDefragment = "member.etcd.gardener.cloud/defragment"
	// AnnotationSnapshot requests the member that leads to take a full snapshot, once for each value. A value that begins with
	// [SnapshotFinal] requests one that is marked as the last one of the cluster.
	AnnotationSnapshot = "member.etcd.gardener.cloud/snapshot"
)

// SnapshotFinal is the begin of a value of AnnotationSnapshot that requests a final snapshot.
const SnapshotFinal = "final/"

// RestoreLatest is the value of AnnotationRestore for the latest backups in the store, of any cluster.
const RestoreLatest = "latest"

// Reasons in AnnotationState.
const (
	// ReasonDataLost: the member has lost its data and cannot join its previous cluster.
	ReasonDataLost = "DataLost"
	// ReasonRestoring: the member restores its data from the backups.
	ReasonRestoring = "Restoring"
	// ReasonDamaged: the data of the member are damaged, and are not replaced.
	ReasonDamaged = "DataDamaged"
	// ReasonJoining: the member has no data yet and joins, or is not a voter yet.
	ReasonJoining = "Joining"
	// ReasonStarting: etcd was started but does not respond yet.
	ReasonStarting = "Starting"
	// ReasonUnhealthy: etcd does not respond or has no quorum.
	ReasonUnhealthy = "Unhealthy"
)

const (
	roleLeader = "Leader"
	roleMember = "Member"
)

// Holder is the holder of a member's Lease.
type Holder struct {
	// ID of the member, and of its cluster, as etcd prints them.
	ID, ClusterID string
	// Leader is set if the member is the leader.
	Leader bool
}

// String returns "<id>:<cluster ID>:<role>".
func (h Holder) String() string {
	role := roleMember
	if h.Leader {
		role = roleLeader
	}
	return h.ID + ":" + h.ClusterID + ":" + role
}

// ParseHolder parses the holder of a Lease: "<id>:<cluster ID>:<role>", or "<id>:<role>" from older versions of
// etcd-druid.
func ParseHolder(text string) (Holder, bool) {
	switch parts := strings.Split(text, ":"); len(parts) {
	case 2:
		return Holder{ID: parts[0], Leader: parts[1] == roleLeader}, parts[0] != ""
	case 3:
		return Holder{ID: parts[0], ClusterID: parts[1], Leader: parts[2] == roleLeader}, parts[0] != ""
	}
	return Holder{}, false
}

// State is why a member cannot serve, as reported by itself.
type State struct {
	// Reason is one of the reasons above; empty while the member serves or has not reported.
	Reason  string
	Message string
}

// String returns "<reason>: <message>", or an empty string.
func (s State) String() string {
	if s.Reason == "" {
		return ""
	}
	return s.Reason + ": " + s.Message
}

// ParseState parses AnnotationState.
func ParseState(text string) State {
	reason, message, _ := strings.Cut(text, ": ")
	return State{Reason: reason, Message: message}
}

// Member is the content of a member's Lease.
type Member struct {
	// Name of the member, of its Lease, and of its Pod.
	Name string
	// Holder is the identity with which the member served last; nil if it never did.
	Holder *Holder
	// Renewed is when the member was last healthy; zero for never.
	Renewed time.Time
	State   State
	// TLS is set if the member uses TLS for its peers.
	TLS       bool
	ClientURL string
	// ClusterID, AcceptedLoss, Defragment, Defragmented and DefragmentError are the annotations of these names.
	ClusterID, AcceptedLoss                   string
	Defragment, Defragmented, DefragmentError string
	// Follows, Restore and AcceptEmpty are the annotations of these names.
	Follows, Restore, AcceptEmpty string
	// Snapshot, SnapshotTaken and SnapshotError are the annotations of these names.
	Snapshot, SnapshotTaken, SnapshotError string
}

// Read returns the content of a Lease.
func Read(lease *coordinationv1.Lease) Member {
	annotations := lease.Annotations
	member := Member{
		Name: lease.Name, State: ParseState(annotations[AnnotationState]), TLS: annotations[AnnotationTLS] == "true",
		ClientURL: annotations[AnnotationClientURL], ClusterID: annotations[AnnotationClusterID], AcceptedLoss: annotations[AnnotationAcceptedLoss],
		Defragment: annotations[AnnotationDefragment], Defragmented: annotations[AnnotationDefragmented],
		DefragmentError: annotations[AnnotationDefragmentError],
		Follows:         annotations[AnnotationFollows], Restore: annotations[AnnotationRestore], AcceptEmpty: annotations[AnnotationAcceptEmpty],
		Snapshot: annotations[AnnotationSnapshot], SnapshotTaken: annotations[AnnotationSnapshotTaken], SnapshotError: annotations[AnnotationSnapshotError],
	}
	if holder, valid := ParseHolder(ptr.Deref(lease.Spec.HolderIdentity, "")); valid {
		member.Holder = &holder
	}
	if lease.Spec.RenewTime != nil {
		member.Renewed = lease.Spec.RenewTime.Time
	}
	return member
}

// Formed returns the ID of the existing cluster according to this Lease. It is empty if there is none, or if its data
// loss was accepted.
func (m Member) Formed() string {
	if m.Holder != nil && m.Holder.ClusterID != "" && m.Holder.ClusterID != m.AcceptedLoss {
		return m.Holder.ClusterID
	}
	if m.ClusterID != m.AcceptedLoss {
		return m.ClusterID
	}
	return ""
}
