package managedseedset

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Action is what a set does with a replica.
type Action string

// The actions.
const (
	Nothing           Action = ""
	CreateShoot       Action = "create the Shoot"
	RetryShoot        Action = "retry the operation of the Shoot"
	DeleteShoot       Action = "delete the Shoot"
	CreateManagedSeed Action = "create the ManagedSeed"
	DeleteManagedSeed Action = "delete the ManagedSeed"
)

// Inputs are what a decision depends on.
type Inputs struct {
	// Set is the name of the set. Wanted is the number of replicas; 0 if the set is being deleted.
	Set    string
	Wanted int
	// Replicas are those that exist.
	Replicas []Replica
	// Pending is the replica for which the set waits, if any.
	Pending *v1alpha1.PendingReplica
	// Next is the lowest ordinal of the next replica.
	Next int
	// MaxRetries is how often the operation of a Shoot is retried.
	MaxRetries int
}

// Decision is what a set does next.
type Decision struct {
	Action Action
	// Replica is the name of the replica for which the set waits after the action, for Reason, and after Retries. It is empty if the set
	// waits for none.
	Replica string
	Reason  v1alpha1.PendingReplicaReason
	Retries int
	// Blocked says why the set cannot do what it should.
	Blocked string
}

// Decide returns what a set does next. It waits for one replica at a time: first for the pending one, then for one that is created or deleted,
// then for any that is not ready.
func Decide(in Inputs) Decision {
	in.Replicas = slices.Clone(in.Replicas)
	slices.SortFunc(in.Replicas, func(a, b Replica) int { return a.Ordinal - b.Ordinal })
	scalesIn := len(in.Replicas) > in.Wanted
	for i := range in.Replicas {
		if in.Pending == nil || in.Replicas[i].Name != in.Pending.Name {
			continue
		}
		if decision, waits := in.step(&in.Replicas[i], scalesIn); waits {
			return decision
		}
	}
	switch {
	case len(in.Replicas) < in.Wanted:
		return Decision{Action: CreateShoot, Replica: fmt.Sprintf("%s-%d", in.Set, in.nextOrdinal()), Reason: v1alpha1.ShootReconcilingReason}
	case scalesIn:
		return in.scaleIn()
	}
	for i := range in.Replicas {
		if in.Replicas[i].ready() {
			continue
		}
		if decision, waits := in.step(&in.Replicas[i], false); waits {
			return decision
		}
	}
	return Decision{}
}

// nextOrdinal returns the ordinal of a new replica. No ordinal is used twice.
func (in *Inputs) nextOrdinal() int {
	next := in.Next
	for _, replica := range in.Replicas {
		next = max(next, replica.Ordinal+1)
	}
	return next
}

// scaleIn deletes the replica that is least useful. Its ManagedSeed is deleted first.
func (in *Inputs) scaleIn() Decision {
	candidates := slices.DeleteFunc(slices.Clone(in.Replicas), func(replica Replica) bool { return !replica.deletable() })
	if len(candidates) == 0 {
		return Decision{Blocked: fmt.Sprintf("%d replicas have to be deleted, but the Seed of each has Shoots, or the replica is protected from deletion", len(in.Replicas)-in.Wanted)}
	}
	slices.SortFunc(candidates, compare)
	victim := candidates[0]
	decision := Decision{Replica: victim.Name}
	switch victim.State {
	case ManagedSeedDeleting:
		decision.Reason = v1alpha1.ManagedSeedDeletingReason
	case ManagedSeedPreparing, ManagedSeedRegistered:
		decision.Action, decision.Reason = DeleteManagedSeed, v1alpha1.ManagedSeedDeletingReason
	case ShootDeleting, ShootDeleteFailed:
		decision, _ = in.step(&victim, true)
	default:
		decision.Action, decision.Reason = DeleteShoot, v1alpha1.ShootDeletingReason
	}
	return decision
}

// step returns what is done for a replica, and whether the set has to wait for it.
func (in *Inputs) step(replica *Replica, scalesIn bool) (Decision, bool) {
	waitFor := func(action Action, reason v1alpha1.PendingReplicaReason) (Decision, bool) {
		return Decision{Action: action, Replica: replica.Name, Reason: reason, Retries: in.retries(replica.Name, reason)}, true
	}
	switch replica.State {
	case ShootDeleteFailed:
		return in.retry(replica, v1alpha1.ShootDeletingReason, v1alpha1.ShootDeleteFailedReason), true
	case ShootDeleting:
		return waitFor(Nothing, v1alpha1.ShootDeletingReason)
	case ManagedSeedDeleting:
		return waitFor(Nothing, v1alpha1.ManagedSeedDeletingReason)
	case ShootReconciled:
		if !scalesIn {
			return waitFor(CreateManagedSeed, v1alpha1.ManagedSeedPreparingReason)
		}
		if replica.deletable() {
			return waitFor(DeleteShoot, v1alpha1.ShootDeletingReason)
		}
	}
	if scalesIn {
		return Decision{}, false
	}
	switch {
	case replica.State == ShootReconcileFailed:
		return in.retry(replica, v1alpha1.ShootReconcilingReason, v1alpha1.ShootReconcileFailedReason), true
	case replica.State == ShootReconciling:
		return waitFor(Nothing, v1alpha1.ShootReconcilingReason)
	case replica.State == ManagedSeedPreparing:
		return waitFor(Nothing, v1alpha1.ManagedSeedPreparingReason)
	case replica.State == ManagedSeedRegistered && !replica.SeedReady:
		return waitFor(Nothing, v1alpha1.SeedNotReadyReason)
	case replica.State == ManagedSeedRegistered && replica.Health != Healthy:
		return waitFor(Nothing, v1alpha1.ShootNotHealthyReason)
	}
	return Decision{}, false
}

// retry retries the failed operation of a Shoot, until it has been retried often enough. Then the set waits for a person. running is the
// reason while the operation runs.
func (in *Inputs) retry(replica *Replica, running, failed v1alpha1.PendingReplicaReason) Decision {
	retries := max(in.retries(replica.Name, running), in.retries(replica.Name, failed))
	if retries >= in.MaxRetries {
		return Decision{Replica: replica.Name, Reason: failed, Retries: retries}
	}
	return Decision{Action: RetryShoot, Replica: replica.Name, Reason: running, Retries: retries + 1}
}

// retries returns how often the operation of a replica was retried while the set waited for this reason.
func (in *Inputs) retries(replica string, reason v1alpha1.PendingReplicaReason) int {
	if in.Pending == nil || in.Pending.Name != replica || in.Pending.Reason != reason {
		return 0
	}
	return int(ptr.Deref(in.Pending.Retries, 0))
}
