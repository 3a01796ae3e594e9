// Package care maintains the conditions of a Seed about the health of its system components, and deletes terminated
// Pods of the seed that were not cleaned up. The conditions are computed from those of the watched ManagedResources.
// Nothing is polled.
package care

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

const (
	reasonRunning       = "SystemComponentsRunning"
	reasonEmergencyStop = "EmergencyStopShootReconciliations"
	reasonBackups       = "BackupSucceeded"
	reasonNoBackups     = "BackupFailed"
)

// observation is the input of the conditions.
type observation struct {
	seed *corev1beta1.Seed
	// components are the ManagedResources of the system components.
	components []resourcesv1alpha1.ManagedResource
	// shoots are the Shoots of the Seed.
	shoots []corev1beta1.Shoot
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

// maxNamed limits the number of Shoots that a message names.
const maxNamed = 10

// backup returns the condition BackupReady if the Seed declares a backup, nil otherwise. It is False if Shoots report that their
// backups are not taken.
func (o observation) backup() *corev1beta1.Condition {
	if o.seed.Spec.Backup == nil {
		return nil
	}
	var failing []string
	for _, shoot := range o.shoots {
		if backupFails(&shoot) {
			failing = append(failing, shoot.Namespace+"/"+shoot.Name)
		}
	}
	condition := corev1beta1.Condition{
		Type: corev1beta1.SeedBackupReady, Status: corev1beta1.ConditionTrue, Reason: reasonBackups,
		Message: "no Shoot reports that the backups of its etcd are overdue",
	}
	if len(failing) > 0 {
		slices.Sort(failing)
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, reasonNoBackups
		condition.Message = fmt.Sprintf("the backups of %d Shoots are overdue or not configured: %s", len(failing),
			strings.Join(failing[:min(len(failing), maxNamed)], ", "))
	}
	before := corev1beta1.FindCondition(o.seed.Status.Conditions, corev1beta1.SeedBackupReady)
	condition = corev1beta1.KeepTimes(before, condition, o.now)
	return &condition
}

// backupFails reports whether a Shoot has a constraint that its backups are not taken.
func backupFails(shoot *corev1beta1.Shoot) bool {
	found := corev1beta1.FindCondition(shoot.Status.Constraints, corev1beta1.ShootBackupReady)
	return found != nil && found.Status == corev1beta1.ConditionFalse
}
