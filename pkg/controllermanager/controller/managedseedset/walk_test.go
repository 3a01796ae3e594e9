package managedseedset

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// fleet is a set whose replicas change by themselves.
type fleet struct {
	*testing.T
	random   *rand.Rand
	set      v1alpha1.ManagedSeedSet
	replicas []Replica
	wanted   int
	used     map[int]bool
}

// TestWalk lets a set and its replicas change at random: operations fail, Seeds get Shoots, people protect and delete. The set never deletes
// what hosts Shoots or is protected, never works on two replicas at a time, and never uses an ordinal twice. In the end, it has what it
// should have.
func TestWalk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		f := &fleet{T: t, random: rand.New(rand.NewPCG(seed, 0)), used: map[int]bool{}}
		for range 300 {
			if f.random.IntN(40) == 0 {
				f.wanted = f.random.IntN(6)
			}
			f.progress()
			f.disturb()
			f.decide()
		}
		for i := range f.replicas {
			f.replicas[i].Hosts, f.replicas[i].Protected = false, false
		}
		for range 400 {
			f.progress()
			f.decide()
		}
		ready := 0
		for i := range f.replicas {
			if f.replicas[i].ready() {
				ready++
			}
		}
		if len(f.replicas) != f.wanted || ready != f.wanted || f.set.Status.PendingReplica != nil || int(f.set.Status.ReadyReplicas) != f.wanted {
			t.Fatalf("seed %d: %d replicas, of which %d are ready; wanted %d: %+v", seed, len(f.replicas), ready, f.wanted, f.set.Status.PendingReplica)
		}
	}
}

// progress lets operations succeed or fail.
func (f *fleet) progress() {
	for i := range f.replicas {
		replica := &f.replicas[i]
		if f.random.IntN(3) > 0 {
			continue
		}
		switch replica.State {
		case ShootReconciling:
			replica.State = ShootReconciled
			if f.random.IntN(6) == 0 {
				replica.State = ShootReconcileFailed
			}
		case ShootReconcileFailed: // a person helps
			replica.State = ShootReconciling
		case ShootDeleteFailed:
			replica.State = ShootDeleting
		case ManagedSeedPreparing:
			replica.State, replica.SeedReady, replica.Health = ManagedSeedRegistered, false, Progressing
		case ManagedSeedRegistered:
			replica.SeedReady, replica.Health = true, Healthy
		case ManagedSeedDeleting:
			replica.State, replica.SeedReady = ShootReconciled, false
		case ShootDeleting:
			replica.State = Unknown
		}
	}
	f.replicas = slices.DeleteFunc(f.replicas, func(replica Replica) bool { return replica.State == Unknown })
}

// disturb changes one replica.
func (f *fleet) disturb() {
	if len(f.replicas) == 0 {
		return
	}
	replica := &f.replicas[f.random.IntN(len(f.replicas))]
	switch f.random.IntN(12) {
	case 0:
		replica.Protected = !replica.Protected
	case 1:
		replica.Hosts = replica.State == ManagedSeedRegistered && !replica.Hosts
	case 2:
		replica.Health = Unhealthy
	case 3:
		if replica.State == ManagedSeedRegistered {
			replica.SeedReady = false
		}
	}
}

// decide lets the set decide, and carries it out.
func (f *fleet) decide() {
	decision := Decide(Inputs{
		Set: "set", Wanted: f.wanted, Replicas: f.replicas, Pending: f.set.Status.PendingReplica, Next: int(f.set.Status.NextReplicaNumber), MaxRetries: 3,
	})
	f.check(decision)
	f.set.Status = statusAfter(&f.set, f.replicas, decision, time.Time{})
	i := slices.IndexFunc(f.replicas, func(replica Replica) bool { return replica.Name == decision.Replica })
	switch decision.Action {
	case CreateShoot:
		f.replicas = append(f.replicas, Replica{Name: decision.Replica, Ordinal: ordinalOf(decision.Replica), State: ShootReconciling, Health: Healthy})
	case CreateManagedSeed:
		f.replicas[i].State = ManagedSeedPreparing
	case DeleteManagedSeed:
		f.replicas[i].State = ManagedSeedDeleting
	case DeleteShoot:
		f.replicas[i].State = ShootDeleting
	case RetryShoot:
		f.replicas[i].State = map[State]State{ShootReconcileFailed: ShootReconciling, ShootDeleteFailed: ShootDeleting}[f.replicas[i].State]
	case Nothing:
	}
}

func (f *fleet) check(decision Decision) {
	f.Helper()
	busy := 0
	for i := range f.replicas {
		replica := &f.replicas[i]
		if slices.Contains([]State{ShootDeleting, ManagedSeedDeleting}, replica.State) {
			busy++
		}
		if replica.Name == decision.Replica && slices.Contains([]Action{DeleteShoot, DeleteManagedSeed}, decision.Action) && !replica.deletable() {
			f.Fatalf("%s of %+v", decision.Action, *replica)
		}
	}
	if busy > 1 {
		f.Fatalf("%d replicas are deleted at a time: %+v", busy, f.replicas)
	}
	if decision.Action == CreateShoot {
		ordinal := ordinalOf(decision.Replica)
		if f.used[ordinal] {
			f.Fatalf("the ordinal %d is used twice", ordinal)
		}
		f.used[ordinal] = true
	}
}
