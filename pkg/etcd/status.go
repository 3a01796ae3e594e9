package etcd

import (
	"cmp"
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Types and states of a lastOperation.
const (
	operationCreate    = "Create"
	operationReconcile = "Reconcile"
	operationDelete    = "Delete"
	stateProcessing    = "Processing"
	stateSucceeded     = "Succeeded"
	stateError         = "Error"
)

// Codes of a lastError without an error code of flows.
const (
	codeReconcile = "ERR_RECONCILE_ETCD"
	codeDataLost  = "ERR_DATA_LOST"
)

// Emission is the outcome of an emission for an Etcd.
type Emission struct {
	Report flow.Report
	// Applied is set if the spec was emitted.
	Applied bool
}

// Status returns the status of an Etcd. It is pure. Timestamps change only with the content that they belong to.
func Status(in Inputs, result Result, emission Emission) druidv1alpha1.EtcdStatus {
	etcd, set := in.Etcd, in.StatefulSet
	status := *etcd.Status.DeepCopy()
	if emission.Applied && (requested(etcd) || in.AutoReconcile) {
		status.ObservedGeneration = ptr.To(etcd.Generation)
	}
	status.ETCD, status.Selector = nil, nil
	status.Replicas, status.CurrentReplicas, status.ReadyReplicas = 0, 0, 0
	if set != nil {
		status.ETCD = &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name}
		status.Selector = ptr.To(metav1.FormatLabelSelector(set.Spec.Selector))
		status.Replicas, status.CurrentReplicas = set.Status.Replicas, set.Status.CurrentReplicas
		status.ReadyReplicas = set.Status.ReadyReplicas
	}
	status.Ready = ptr.To(set != nil && set.Status.ObservedGeneration == set.Generation &&
		ptr.Deref(set.Spec.Replicas, 0) == etcd.Spec.Replicas && set.Status.ReadyReplicas >= etcd.Spec.Replicas &&
		set.Status.Replicas <= etcd.Spec.Replicas) // Pods that terminate count until they are gone
	status.PeerURLTLSEnabled = ptr.To(in.peersUseTLS())
	status.Members = in.memberStatuses()
	status.Conditions = in.conditions(result)
	if result.NotDue == "" {
		status.LastOperation = in.lastOperation(emission.Report)
	}
	status.LastErrors = in.lastErrors(result, emission.Report)
	return status
}

// peersUseTLS reports whether all members of the cluster use TLS for peers.
func (in Inputs) peersUseTLS() bool {
	served := in.served()
	for _, member := range served {
		if !member.TLS {
			return false
		}
	}
	return len(served) > 0
}

// memberStatuses returns the status of the members that have served or report why they do not.
func (in Inputs) memberStatuses() []druidv1alpha1.EtcdMemberStatus {
	var statuses []druidv1alpha1.EtcdMemberStatus
	for _, member := range in.upTo(in.Etcd.Spec.Replicas) {
		if member.Holder == nil && member.State.Reason == "" {
			continue
		}
		status := druidv1alpha1.EtcdMemberStatus{Name: member.Name, LastTransitionTime: metav1.NewTime(in.Now)}
		status.Status, status.Reason = memberStatus(member, in.Now)
		if member.Holder != nil {
			role := druidv1alpha1.EtcdRoleMember
			if member.Holder.Leader && status.Status == druidv1alpha1.EtcdMemberStatusReady {
				role = druidv1alpha1.EtcdRoleLeader
			}
			status.ID, status.Role = ptr.To(member.Holder.ID), &role
		}
		for _, before := range in.Etcd.Status.Members {
			if before.Name == status.Name && before.Status == status.Status {
				status.LastTransitionTime = before.LastTransitionTime
			}
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// lastOperation returns the current operation of the operator.
func (in Inputs) lastOperation(report flow.Report) *druidv1alpha1.LastOperation {
	etcd, before := in.Etcd, ptr.Deref(in.Etcd.Status.LastOperation, druidv1alpha1.LastOperation{})
	last := druidv1alpha1.LastOperation{
		Type: operationReconcile, State: stateProcessing, Description: report.LastOperation.Description,
		RunID: fmt.Sprintf("%s-%d", etcd.UID, etcd.Generation), LastUpdateTime: before.LastUpdateTime,
	}
	switch {
	case in.deleting():
		last.Type = operationDelete
	case etcd.Status.ObservedGeneration == nil, before.Type == operationCreate && before.State != stateSucceeded, before.RunID == last.RunID &&
		before.Type == operationCreate:
		last.Type = operationCreate
	}
	switch report.LastOperation.State {
	case corev1beta1.LastOperationStateSucceeded:
		last.State = stateSucceeded
	case corev1beta1.LastOperationStateError, corev1beta1.LastOperationStateFailed:
		last.State = stateError
	}
	if last != before {
		last.LastUpdateTime = metav1.NewTime(in.Now)
	}
	return &last
}

// lastErrors returns the current errors. Data loss comes first.
func (in Inputs) lastErrors(result Result, report flow.Report) []druidv1alpha1.LastError {
	var errs []druidv1alpha1.LastError
	add := func(code, description string) {
		found := druidv1alpha1.LastError{Code: code, Description: description, ObservedAt: metav1.NewTime(in.Now)}
		for _, before := range in.Etcd.Status.LastErrors {
			if before.Code == code && before.Description == description {
				found.ObservedAt = before.ObservedAt
			}
		}
		errs = append(errs, found)
	}
	if text := in.dataLost(); text != "" {
		add(codeDataLost, text)
	}
	if result.NotDue != "" {
		return errs
	}
	for _, err := range report.LastErrors {
		code := ""
		if len(err.Codes) > 0 {
			code = string(err.Codes[0])
		}
		add(cmp.Or(code, codeReconcile), err.Description)
	}
	return errs
}

// dataLost returns a message about lost data with the possible remedies, empty if no data are lost.
func (in Inputs) dataLost() string {
	if in.deleting() || in.Etcd.Spec.Replicas == 0 {
		return ""
	}
	id, message := in.lostCluster(in.Etcd.Spec.Replicas)
	if id == "" || in.Ledger.Has(entryAcceptedLoss, id) {
		return ""
	}
	// The command comes first, because conditions of Shoots cut long texts.
	remedy, then := "Restore the volume, or accept the loss", "."
	if in.store() != nil {
		remedy, then = "Restore the volume, or accept the loss of what is not in the backups", ": the latest backups are then restored."
	}
	return strings.Join([]string{
		"The data of the cluster are lost.",
		fmt.Sprintf("%s: kubectl -n %s annotate etcd %s --overwrite %s=%s",
			remedy, in.Etcd.Namespace, in.Etcd.Name, AnnotationAcceptDataLoss, id) + then,
		"No empty cluster is created in its place.", message + ".",
	}, " ")
}
