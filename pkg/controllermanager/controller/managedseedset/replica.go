package managedseedset

import (
	"cmp"
	"strconv"
	"strings"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// State is how far a replica is. The states are ordered: a set deletes replicas with a lower state first.
type State int

// The states.
const (
	Unknown State = iota
	ShootReconcileFailed
	ShootDeleteFailed
	ShootReconciling
	ShootDeleting
	ShootReconciled
	ManagedSeedPreparing
	ManagedSeedDeleting
	ManagedSeedRegistered
)

// Health is the health of a Shoot, from the worst to the best.
type Health int

// The values of Health.
const (
	Unhealthy Health = iota
	HealthUnknown
	Progressing
	Healthy
)

// Replica is what decisions depend on.
type Replica struct {
	Name string
	// Ordinal is the number at the end of the name; -1 if there is none.
	Ordinal   int
	State     State
	SeedReady bool
	Health    Health
	// Hosts is set if the Seed has Shoots, and Protected if an annotation protects the replica from deletion.
	Hosts, Protected bool
}

// ready reports whether a set goes on to the next replica.
func (r *Replica) ready() bool {
	return r.State == ManagedSeedRegistered && r.SeedReady && r.Health == Healthy
}

// deletable reports whether a set may delete a replica.
func (r *Replica) deletable() bool { return !r.Hosts && !r.Protected }

// compare orders replicas: a set deletes the first ones first.
func compare(a, b Replica) int {
	number := func(value bool) int {
		if value {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(number(a.SeedReady), number(b.SeedReady)), cmp.Compare(a.Health, b.Health),
		cmp.Compare(a.Ordinal, b.Ordinal))
}

// ReplicaOf returns the replica of a Shoot. The ManagedSeed and the Seed of the same name are nil if they do not exist. hosts is set if the
// Seed has Shoots.
func ReplicaOf(shoot *gardencorev1beta1.Shoot, managed *v1alpha1.ManagedSeed, seed *gardencorev1beta1.Seed, hosts bool) Replica {
	replica := Replica{
		Name: shoot.Name, Ordinal: ordinalOf(shoot.Name), State: stateOf(shoot, managed), Health: healthOf(shoot), Hosts: hosts,
		SeedReady: seed != nil && isReady(seed), Protected: shoot.Annotations[constants.AnnotationProtectFromDeletion] == "true",
	}
	if managed != nil && managed.Annotations[constants.AnnotationProtectFromDeletion] == "true" {
		replica.Protected = true
	}
	return replica
}

func ordinalOf(name string) int {
	ordinal, err := strconv.ParseUint(name[strings.LastIndex(name, "-")+1:], 10, 30)
	if err != nil || !strings.Contains(name, "-") {
		return -1
	}
	return int(ordinal)
}

func stateOf(shoot *gardencorev1beta1.Shoot, managed *v1alpha1.ManagedSeed) State {
	if managed == nil {
		return stateOfShoot(shoot)
	}
	condition := gardencorev1beta1.FindCondition(managed.Status.Conditions, v1alpha1.SeedRegistered)
	switch {
	case managed.DeletionTimestamp != nil:
		return ManagedSeedDeleting
	case condition != nil && condition.Status == gardencorev1beta1.ConditionTrue && managed.Status.ObservedGeneration == managed.Generation:
		return ManagedSeedRegistered
	}
	return ManagedSeedPreparing
}

// stateOfShoot returns the state of a replica without a ManagedSeed. An operation counts only if it is for the current generation.
func stateOfShoot(shoot *gardencorev1beta1.Shoot) State {
	last, deleting := shoot.Status.LastOperation, shoot.DeletionTimestamp != nil
	var state gardencorev1beta1.LastOperationState
	if last != nil && shoot.Status.ObservedGeneration == shoot.Generation && deleting == (last.Type == gardencorev1beta1.LastOperationTypeDelete) {
		state = last.State
	}
	switch {
	case deleting && state == gardencorev1beta1.LastOperationStateFailed:
		return ShootDeleteFailed
	case deleting:
		return ShootDeleting
	case state == gardencorev1beta1.LastOperationStateFailed:
		return ShootReconcileFailed
	case state == gardencorev1beta1.LastOperationStateSucceeded && last.Type != gardencorev1beta1.LastOperationTypeMigrate:
		return ShootReconciled
	}
	return ShootReconciling
}

// healthOf returns the health that the label of a Shoot names. Without the label it is not known yet.
func healthOf(shoot *gardencorev1beta1.Shoot) Health {
	switch shoot.Labels[constants.LabelShootStatus] {
	case "healthy":
		return Healthy
	case "unhealthy":
		return Unhealthy
	case "unknown":
		return HealthUnknown
	}
	return Progressing
}

// isReady reports whether a Seed can host Shoots.
func isReady(seed *gardencorev1beta1.Seed) bool {
	is := func(kind gardencorev1beta1.ConditionType, optional bool) bool {
		condition := gardencorev1beta1.FindCondition(seed.Status.Conditions, kind)
		return condition == nil && optional || condition != nil && condition.Status == gardencorev1beta1.ConditionTrue
	}
	return seed.DeletionTimestamp == nil && seed.Status.ObservedGeneration == seed.Generation && is(gardencorev1beta1.SeedGardenletReady, false) &&
		is(gardencorev1beta1.SeedSystemComponentsHealthy, false) && is(gardencorev1beta1.SeedBackupBucketsReady, true)
}
