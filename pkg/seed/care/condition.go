// Package care maintains the conditions of a Seed about the health of its system components, and deletes terminated
// Pods of the seed that were not cleaned up. The conditions are computed from those of the watched ManagedResources.
// Nothing is polled.
package care

import (
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

const (
	reasonRunning       = "SystemComponentsRunning"
	reasonEmergencyStop = "EmergencyStopShootReconciliations"
	reasonNoBackups     = "BackupsNotTaken"
)

// observation is the input of the conditions.
type observation struct {
	seed *corev1beta1.Seed
	// components are the ManagedResources of the system components.
	components []resourcesv1alpha1.ManagedResource
	// threshold is how long a failed check is reported as Progressing; 0 to report it immediately.
	threshold time.Duration
	now       time.Time
}

// systemComponents returns the condition SeedSystemComponentsHealthy, and when it changes without an event; zero for
// never.
func (o observation) systemComponents() (corev1beta1.Condition, time.Time) {
	before := corev1beta1.FindCondition(o.seed.Status.Conditions, corev1beta1.SeedSystemComponentsHealthy)
	if len(o.components) == 0 {
		return corev1beta1.KeepTimes(before, corev1beta1.Condition{
			Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionUnknown, Reason: corev1beta1.ReasonConditionInitialized,
			Message: "no ManagedResource of the seed's system components exists yet",
		}, o.now), time.Time{}
	}
	return readiness.Condition(before, corev1beta1.Condition{
		Type: corev1beta1.SeedSystemComponentsHealthy, Reason: reasonRunning,
		Message: "all system components of the seed are applied, healthy and rolled out",
	}, readiness.CheckAll(o.components), o.seed.Status.LastOperation, o.threshold, o.now)
}

// emergencyStop returns the condition EmergencyStopShootReconciliations if the Seed requests the stop, nil otherwise.
func (o observation) emergencyStop(annotated bool) *corev1beta1.Condition {
	if !annotated {
		return nil
	}
	before := corev1beta1.FindCondition(o.seed.Status.Conditions, corev1beta1.SeedEmergencyStopShootReconciliations)
	condition := corev1beta1.KeepTimes(before, corev1beta1.Condition{
		Type: corev1beta1.SeedEmergencyStopShootReconciliations, Status: corev1beta1.ConditionTrue, Reason: reasonEmergencyStop,
		Message: "the Seed is annotated with an emergency stop: its Shoots are not reconciled",
	}, o.now)
	return &condition
}

// backup returns the condition BackupReady if the Seed declares a backup, nil otherwise. It is never True: nothing takes
// snapshots of etcd yet, and operators must not rely on them.
func (o observation) backup() *corev1beta1.Condition {
	if o.seed.Spec.Backup == nil {
		return nil
	}
	before := corev1beta1.FindCondition(o.seed.Status.Conditions, corev1beta1.SeedBackupReady)
	condition := corev1beta1.KeepTimes(before, corev1beta1.Condition{
		Type: corev1beta1.SeedBackupReady, Status: corev1beta1.ConditionFalse, Reason: reasonNoBackups,
		Message: "spec.backup is declared and its bucket is maintained, but this version takes no snapshots of etcd: " +
			"data of Shoots that is lost with the volumes of their etcd cannot be restored",
	}, o.now)
	return &condition
}
