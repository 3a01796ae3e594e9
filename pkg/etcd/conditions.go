package etcd

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
)

// Reasons of conditions.
const (
	reasonNotChecked    = "NotChecked"
	reasonNoMembers     = "NoMembersInStatus"
	reasonQuorate       = "Quorate"
	reasonQuorumLost    = "QuorumLost"
	reasonQuorumUnknown = "QuorumUnknown"
	reasonDataLost      = "DataLost"
	reasonAllReady      = "AllMembersReady"
	reasonNotAllReady   = "NotAllMembersReady"
	reasonAllUpdated    = "AllMembersUpdated"
	reasonNotAllUpdated = "NotAllMembersUpdated"
	reasonSameCluster   = "MatchingClusterID"
	reasonOtherCluster  = "ClusterIDMismatch"
)

// statement is the content of a condition: its status, reason and message.
type statement struct {
	status          druidv1alpha1.ConditionStatus
	reason, message string
}

// conditions returns the conditions of an Etcd.
func (in Inputs) conditions(result Result) []druidv1alpha1.Condition {
	var all []druidv1alpha1.Condition
	add := func(kind druidv1alpha1.ConditionType, s statement) {
		all = append(all, in.keepTimes(druidv1alpha1.Condition{Type: kind, Status: s.status, Reason: s.reason, Message: s.message}))
	}
	if in.Etcd.Spec.Replicas == 0 {
		for _, kind := range []druidv1alpha1.ConditionType{
			druidv1alpha1.ConditionTypeReady, druidv1alpha1.ConditionTypeAllMembersReady, druidv1alpha1.ConditionTypeClusterIDMismatch,
		} {
			add(kind, statement{druidv1alpha1.ConditionUnknown, reasonNotChecked, "The Etcd has 0 replicas."})
		}
	} else {
		add(druidv1alpha1.ConditionTypeReady, in.quorate())
		add(druidv1alpha1.ConditionTypeAllMembersReady, in.allReady())
		add(druidv1alpha1.ConditionTypeClusterIDMismatch, in.sameCluster())
	}
	add(druidv1alpha1.ConditionTypeAllMembersUpdated, in.allUpdated(result))
	if in.Etcd.Spec.Backup.Store != nil {
		add(druidv1alpha1.ConditionTypeBackupReady, in.backupReady())
	}
	if s, known := in.snapshotTaken(); known {
		add(ConditionTypeSnapshotTaken, s)
	}
	if s, known := in.compacted(); known {
		add(druidv1alpha1.ConditionTypeLastSnapshotCompactionSucceeded, s)
	}
	return all
}

// quorate returns the condition Ready.
func (in Inputs) quorate() statement {
	replicas := in.Etcd.Spec.Replicas
	if lost := in.dataLost(); lost != "" {
		return statement{druidv1alpha1.ConditionFalse, reasonDataLost, lost}
	}
	statuses := in.memberStatuses()
	if len(statuses) == 0 {
		return statement{druidv1alpha1.ConditionUnknown, reasonNoMembers, "No member has reported yet."}
	}
	var ready, unknown int32
	for _, status := range statuses {
		switch status.Status {
		case druidv1alpha1.EtcdMemberStatusReady:
			ready++
		case druidv1alpha1.EtcdMemberStatusUnknown:
			unknown++
		}
	}
	// A growing cluster has a quorum as soon as a majority of the joined members is ready.
	needed := quorum(min(replicas, max(int32(len(in.served())), 1))) //nolint:gosec // a few
	switch {
	case ready >= needed:
		return statement{druidv1alpha1.ConditionTrue, reasonQuorate, "A majority of the members is ready."}
	case ready+unknown >= needed:
		return statement{druidv1alpha1.ConditionUnknown, reasonQuorumUnknown, "Members have not renewed their Leases: " + in.notReady(statuses) + "."}
	}
	return statement{druidv1alpha1.ConditionFalse, reasonQuorumLost, "No majority of the members is ready: " + in.notReady(statuses) + "."}
}

// notReady lists the members that are not ready, with the messages that they report.
func (in Inputs) notReady(statuses []druidv1alpha1.EtcdMemberStatus) string {
	messages := map[string]string{}
	for _, member := range in.Members {
		messages[member.Name] = member.State.Message
	}
	var texts []string
	for _, status := range statuses {
		if status.Status == druidv1alpha1.EtcdMemberStatusReady {
			continue
		}
		text := fmt.Sprintf("%s (%s)", status.Name, status.Reason)
		if messages[status.Name] != "" {
			text = fmt.Sprintf("%s (%s: %s)", status.Name, status.Reason, messages[status.Name])
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// allReady returns the condition AllMembersReady.
func (in Inputs) allReady() statement {
	statuses := in.memberStatuses()
	switch {
	case len(statuses) == 0:
		return statement{druidv1alpha1.ConditionUnknown, reasonNoMembers, "No member has reported yet."}
	case in.ready(in.Etcd.Spec.Replicas) == in.Etcd.Spec.Replicas:
		return statement{druidv1alpha1.ConditionTrue, reasonAllReady, "All members are ready."}
	case in.notReady(statuses) == "":
		message := fmt.Sprintf("%d of %d members have reported.", len(statuses), in.Etcd.Spec.Replicas)
		return statement{druidv1alpha1.ConditionFalse, reasonNotAllReady, message}
	}
	return statement{druidv1alpha1.ConditionFalse, reasonNotAllReady, "Members are not ready: " + in.notReady(statuses) + "."}
}

// sameCluster returns the condition ClusterIDMismatch.
func (in Inputs) sameCluster() statement {
	var first string
	for _, member := range in.served() {
		id := member.Holder.ClusterID
		if first != "" && id != first {
			return statement{druidv1alpha1.ConditionTrue, reasonOtherCluster, fmt.Sprintf("Members belong to the clusters %s and %s.", first, id)}
		}
		first = id
	}
	return statement{druidv1alpha1.ConditionFalse, reasonSameCluster, "All members belong to the same cluster."}
}

// allUpdated returns the condition AllMembersUpdated.
func (in Inputs) allUpdated(result Result) statement {
	why := in.updated(result.Digest)
	if result.Invalid != "" {
		why = result.Invalid
	}
	if why != "" {
		return statement{druidv1alpha1.ConditionFalse, reasonNotAllUpdated, "Not all members have the current configuration: " + why + "."}
	}
	return statement{druidv1alpha1.ConditionTrue, reasonAllUpdated, "All members have the current configuration."}
}

// keepTimes keeps the timestamps of a condition as far as it is unchanged.
func (in Inputs) keepTimes(condition druidv1alpha1.Condition) druidv1alpha1.Condition {
	condition.LastTransitionTime, condition.LastUpdateTime = metav1.NewTime(in.Now), metav1.NewTime(in.Now)
	for _, before := range in.Etcd.Status.Conditions {
		if before.Type != condition.Type || before.Status != condition.Status {
			continue
		}
		condition.LastTransitionTime = before.LastTransitionTime
		if before.Reason == condition.Reason && before.Message == condition.Message {
			condition.LastUpdateTime = before.LastUpdateTime
		}
	}
	return condition
}
