package managedseedset

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// statusAfter returns the status of a set after a decision was carried out.
func statusAfter(set *v1alpha1.ManagedSeedSet, replicas []Replica, decision Decision, now time.Time) v1alpha1.ManagedSeedSetStatus {
	status := *set.Status.DeepCopy()
	status.ObservedGeneration, status.Replicas, status.ReadyReplicas = set.Generation, int32(len(replicas)), 0 //nolint:gosec // replicas are an int32
	for i := range replicas {
		if replicas[i].ready() {
			status.ReadyReplicas++
		}
		status.NextReplicaNumber = max(status.NextReplicaNumber, after(replicas[i].Ordinal))
	}
	if decision.Action == CreateShoot {
		status.Replicas++
		status.NextReplicaNumber = max(status.NextReplicaNumber, after(ordinalOf(decision.Replica)))
	}
	status.PendingReplica = pendingAfter(set.Status.PendingReplica, decision, now)
	return status
}

// after returns the number after an ordinal, which is less than 2^30.
func after(ordinal int) int32 { return int32(ordinal) + 1 } //nolint:gosec // see above

// pendingAfter returns the replica for which a set waits. The time remains while nothing else changes.
func pendingAfter(before *v1alpha1.PendingReplica, decision Decision, now time.Time) *v1alpha1.PendingReplica {
	if decision.Replica == "" {
		return nil
	}
	pending := &v1alpha1.PendingReplica{Name: decision.Replica, Reason: decision.Reason, Since: metav1.NewTime(now).Rfc3339Copy()}
	if decision.Retries > 0 {
		pending.Retries = ptr.To(int32(decision.Retries)) //nolint:gosec // at most the configured number
	}
	if before != nil && before.Name == pending.Name && before.Reason == pending.Reason && ptr.Deref(before.Retries, 0) == ptr.Deref(pending.Retries, 0) {
		return before
	}
	return pending
}

// Reasons of Events.
//
// +events:on=ManagedSeedSet
const (
	eventCreatingShoot        = "CreatingShoot"                   // Normal: the Shoot of a replica is created
	eventDeletingShoot        = "DeletingShoot"                   // Normal: the Shoot of a replica is deleted
	eventCreatingManagedSeed  = "CreatingManagedSeed"             // Normal: the ManagedSeed of a replica is created
	eventDeletingManagedSeed  = "DeletingManagedSeed"             // Normal: the ManagedSeed of a replica is deleted
	eventRetryingReconcile    = "RetryingShootReconciliation"     // Normal: the failed operation of a Shoot is retried
	eventRetryingDelete       = "RetryingShootDeletion"           // Normal: the failed deletion of a Shoot is retried
	eventNotRetryingReconcile = "NotRetryingShootReconciliation"  // Warning: the operation of a Shoot failed too often, and the set waits for it
	eventNotRetryingDelete    = "NotRetryingShootDeletion"        // Warning: the deletion of a Shoot failed too often, and the set waits for it
	eventShootReconciling     = "WaitingForShootReconciled"       // Normal: the set waits for a Shoot
	eventShootDeleting        = "WaitingForShootDeleted"          // Normal: the set waits for the deletion of a Shoot
	eventShootNotHealthy      = "WaitingForShootHealthy"          // Normal: the set waits until a Shoot is healthy
	eventManagedSeedPreparing = "WaitingForManagedSeedRegistered" // Normal: the set waits until a ManagedSeed has registered its Seed
	eventManagedSeedDeleting  = "WaitingForManagedSeedDeleted"    // Normal: the set waits for the deletion of a ManagedSeed
	eventSeedNotReady         = "WaitingForSeedReady"             // Normal: the set waits until a Seed is ready
	eventError                = "ReconcileError"                  // Warning: the set cannot do what it should
)

// notice is the content of an Event about a decision.
type notice struct {
	warning      bool
	reason, note string
}

// eventOf returns the Event about a decision that changes what a set waits for.
func eventOf(decision Decision) notice {
	byAction := map[Action]string{
		CreateShoot: eventCreatingShoot, DeleteShoot: eventDeletingShoot, CreateManagedSeed: eventCreatingManagedSeed, DeleteManagedSeed: eventDeletingManagedSeed,
	}
	byReason := map[v1alpha1.PendingReplicaReason]string{
		v1alpha1.ShootReconcilingReason: eventShootReconciling, v1alpha1.ShootDeletingReason: eventShootDeleting, v1alpha1.ShootNotHealthyReason: eventShootNotHealthy,
		v1alpha1.ManagedSeedPreparingReason: eventManagedSeedPreparing, v1alpha1.ManagedSeedDeletingReason: eventManagedSeedDeleting,
		v1alpha1.SeedNotReadyReason: eventSeedNotReady,
	}
	switch {
	case decision.Blocked != "":
		return notice{true, eventError, decision.Blocked}
	case decision.Reason == v1alpha1.ShootReconcileFailedReason:
		return notice{true, eventNotRetryingReconcile, fmt.Sprintf("Shoot %s failed, and is not retried again after %d retries", decision.Replica, decision.Retries)}
	case decision.Reason == v1alpha1.ShootDeleteFailedReason:
		return notice{true, eventNotRetryingDelete, fmt.Sprintf("The deletion of Shoot %s failed, and is not retried again after %d retries", decision.Replica, decision.Retries)}
	case decision.Action == RetryShoot && decision.Reason == v1alpha1.ShootDeletingReason:
		return notice{false, eventRetryingDelete, fmt.Sprintf("The deletion of Shoot %s failed: retry %d", decision.Replica, decision.Retries)}
	case decision.Action == RetryShoot:
		return notice{false, eventRetryingReconcile, fmt.Sprintf("Shoot %s failed: retry %d", decision.Replica, decision.Retries)}
	case decision.Action != Nothing:
		return notice{false, byAction[decision.Action], fmt.Sprintf("Replica %s: %s", decision.Replica, decision.Action)}
	}
	return notice{false, byReason[decision.Reason], fmt.Sprintf("Waiting for replica %s: %s", decision.Replica, decision.Reason)}
}
