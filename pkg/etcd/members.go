package etcd

import (
	"time"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

const (
	// unknownAfter is the age of a Lease renewal from which the state of the member is unknown, and notReadyAfter the age
	// from which it is not ready. The values are those of etcd-druid.
	unknownAfter  = time.Minute
	notReadyAfter = 6 * time.Minute
)

// Reasons of the state of a member.
const (
	reasonLeaseSucceeded = "LeaseSucceeded"
	reasonLeaseExpired   = "LeaseExpired"
	reasonGraceExceeded  = "UnknownGracePeriodExceeded"
)

// memberStatus returns the status of a member and its reason.
func memberStatus(member lease.Member, now time.Time) (druidv1alpha1.EtcdMemberConditionStatus, string) {
	age := now.Sub(member.Renewed)
	switch {
	case member.State.Reason != "":
		return druidv1alpha1.EtcdMemberStatusNotReady, member.State.Reason
	case member.Renewed.IsZero() || age >= notReadyAfter:
		return druidv1alpha1.EtcdMemberStatusNotReady, reasonGraceExceeded
	case age >= unknownAfter:
		return druidv1alpha1.EtcdMemberStatusUnknown, reasonLeaseExpired
	}
	return druidv1alpha1.EtcdMemberStatusReady, reasonLeaseSucceeded
}

// ready returns how many of the first replicas members are ready.
func (in Inputs) ready(replicas int32) int32 {
	var count int32
	for _, member := range in.upTo(replicas) {
		if status, _ := memberStatus(member, in.Now); status == druidv1alpha1.EtcdMemberStatusReady {
			count++
		}
	}
	return count
}

// upTo returns the members with an ordinal below replicas.
func (in Inputs) upTo(replicas int32) []lease.Member {
	names := map[string]bool{}
	for i := range replicas {
		names[MemberName(in.Etcd.Name, i)] = true
	}
	var members []lease.Member
	for _, member := range in.Members {
		if names[member.Name] {
			members = append(members, member)
		}
	}
	return members
}

// nextExpiry returns when the state of a member changes without an event; zero for never.
func (in Inputs) nextExpiry() time.Time {
	var next time.Time
	for _, member := range in.Members {
		for _, after := range []time.Duration{unknownAfter, notReadyAfter} {
			at := member.Renewed.Add(after)
			if !member.Renewed.IsZero() && at.After(in.Now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// quorum returns the size of a majority.
func quorum(replicas int32) int32 { return replicas/2 + 1 }

// lostCluster returns the ID of a cluster whose data are lost, and the message of a member about it. This is the case
// if a member has lost its data and no other member has any. Otherwise the ID is empty.
func (in Inputs) lostCluster(replicas int32) (id, message string) {
	members := in.upTo(replicas)
	for _, member := range members {
		switch member.State.Reason {
		case lease.ReasonDataLost:
			if formed := member.Formed(); formed != "" && id == "" {
				id, message = formed, member.Name+": "+member.State.Message
			}
		case lease.ReasonJoining:
		default:
			return "", ""
		}
	}
	if int32(len(members)) < replicas { //nolint:gosec // a few
		return "", ""
	}
	return id, message
}
