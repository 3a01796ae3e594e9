// Package lease is how members of etcd and the operator exchange what they know: by the Leases of the members. A member renews its Lease while
// it is healthy, so that the operator has to ask no member. Name, labels and holder are those of etcd-druid; the annotations below that it does
// not have carry the rest.
package lease

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// Labels of all that belongs to an Etcd, and values of them.
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
	// AnnotationTLS says whether the member uses TLS for its peers: "true" or "false".
	AnnotationTLS = "member.etcd.gardener.cloud/tls-enabled"
	// AnnotationClientURL is where the member listens for clients. Members that join ask there.
	AnnotationClientURL = "member.etcd.gardener.cloud/client-url"
	// AnnotationState is "<reason>: <message>" while the member cannot serve for a reason that it knows; absent otherwise.
	AnnotationState = "member.etcd.gardener.cloud/state"
	// AnnotationDefragmented is the value of AnnotationDefragment that the member has carried out last.
	AnnotationDefragmented = "member.etcd.gardener.cloud/defragmented"
	// AnnotationDefragmentError is why that failed; absent if it did not.
	AnnotationDefragmentError = "member.etcd.gardener.cloud/defragment-error"
)

// Annotations that the operator writes on the Lease of a member.
const (
	// AnnotationClusterID is the identifier of the cluster that has been formed. As long as it is there, no member forms another one.
	AnnotationClusterID = "member.etcd.gardener.cloud/cluster-id"
	// AnnotationAcceptedLoss is the identifier of the cluster whose loss a person has accepted: another one may be formed instead.
	AnnotationAcceptedLoss = "member.etcd.gardener.cloud/accepted-data-loss"
	// AnnotationDefragment asks the member to defragment its database, once for each value.
	AnnotationDefragment = "member.etcd.gardener.cloud/defragment"
)

// Reasons in AnnotationState.
const (
	// ReasonDataLost: the member has lost its data, and cannot join the cluster that it belonged to.
	ReasonDataLost = "DataLost"
	// ReasonJoining: the member has no data yet and joins, or is not a voter yet.
	ReasonJoining = "Joining"
	// ReasonStarting: etcd was started, and has not answered yet.
	ReasonStarting = "Starting"
	// ReasonUnhealthy: etcd answers nothing, or no majority of the members does.
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
	// Leader is set if the member leads the others.
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

// ParseHolder reads the holder of a Lease: "<id>:<cluster ID>:<role>", or "<id>:<role>" as older versions of etcd-druid write it.
func ParseHolder(text string) (Holder, bool) {
	switch parts := strings.Split(text, ":"); len(parts) {
	case 2:
		return Holder{ID: parts[0], Leader: parts[1] == roleLeader}, parts[0] != ""
	case 3:
		return Holder{ID: parts[0], ClusterID: parts[1], Leader: parts[2] == roleLeader}, parts[0] != ""
	}
	return Holder{}, false
}

// State is what a member says of itself while it cannot serve.
type State struct {
	// Reason is one of the reasons above; empty while the member serves, or cannot say anything.
	Reason  string
	Message string
}

// String returns "<reason>: <message>", or nothing.
func (s State) String() string {
	if s.Reason == "" {
		return ""
	}
	return s.Reason + ": " + s.Message
}

// ParseState reads AnnotationState.
func ParseState(text string) State {
	reason, message, _ := strings.Cut(text, ": ")
	return State{Reason: reason, Message: message}
}

// Member is what the Lease of a member says.
type Member struct {
	// Name of the member, of its Lease, and of its Pod.
	Name string
	// Holder is the member as it served last; nil if it never did.
	Holder *Holder
	// Renewed is when it last was healthy; zero for never.
	Renewed time.Time
	State   State
	// TLS is set if the member uses TLS for its peers.
	TLS       bool
	ClientURL string
	// ClusterID, AcceptedLoss, Defragment, Defragmented and DefragmentError are the annotations of these names.
	ClusterID, AcceptedLoss                   string
	Defragment, Defragmented, DefragmentError string
}

// Read returns what a Lease says.
func Read(lease *coordinationv1.Lease) Member {
	annotations := lease.Annotations
	member := Member{
		Name: lease.Name, State: ParseState(annotations[AnnotationState]), TLS: annotations[AnnotationTLS] == "true",
		ClientURL: annotations[AnnotationClientURL], ClusterID: annotations[AnnotationClusterID], AcceptedLoss: annotations[AnnotationAcceptedLoss],
		Defragment: annotations[AnnotationDefragment], Defragmented: annotations[AnnotationDefragmented],
		DefragmentError: annotations[AnnotationDefragmentError],
	}
	if holder, valid := ParseHolder(ptr.Deref(lease.Spec.HolderIdentity, "")); valid {
		member.Holder = &holder
	}
	if lease.Spec.RenewTime != nil {
		member.Renewed = lease.Spec.RenewTime.Time
	}
	return member
}

// Formed returns the identifier of the cluster that has been formed as far as this Lease says, and whose loss was not accepted; empty if
// there is none.
func (m Member) Formed() string {
	if m.Holder != nil && m.Holder.ClusterID != "" && m.Holder.ClusterID != m.AcceptedLoss {
		return m.Holder.ClusterID
	}
	if m.ClusterID != m.AcceptedLoss {
		return m.ClusterID
	}
	return ""
}
