package managedseedset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

var stateNames = map[string]State{
	"unknown": Unknown, "reconcile-failed": ShootReconcileFailed, "delete-failed": ShootDeleteFailed, "reconciling": ShootReconciling,
	"deleting": ShootDeleting, "reconciled": ShootReconciled, "preparing": ManagedSeedPreparing, "seed-deleting": ManagedSeedDeleting,
	"registered": ManagedSeedRegistered,
}

// replicasOf reads replicas such as "0 registered; 1 reconciled not-ready unhealthy hosts protected". By default, Seeds are ready and Shoots
// are healthy.
func replicasOf(t *testing.T, text string) []Replica {
	t.Helper()
	var found []Replica
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		ordinal, err := strconv.Atoi(words[0])
		state, known := stateNames[words[1]]
		if err != nil || !known {
			t.Fatalf("%q is not a replica: %v", part, err)
		}
		replica := Replica{Name: "set-" + words[0], Ordinal: ordinal, State: state, SeedReady: state == ManagedSeedRegistered, Health: Healthy}
		for _, word := range words[2:] {
			switch word {
			case "not-ready":
				replica.SeedReady = false
			case "progressing":
				replica.Health = Progressing
			case "health-unknown":
				replica.Health = HealthUnknown
			case "unhealthy":
				replica.Health = Unhealthy
			case "hosts":
				replica.Hosts = true
			case "protected":
				replica.Protected = true
			default:
				t.Fatalf("%q is not known", word)
			}
		}
		found = append(found, replica)
	}
	return found
}

// pendingOf reads a pending replica such as "1 ShootReconciling 2".
func pendingOf(text string) *v1alpha1.PendingReplica {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	pending := &v1alpha1.PendingReplica{Name: "set-" + words[0], Reason: v1alpha1.PendingReplicaReason(words[1])}
	if len(words) > 2 {
		retries, _ := strconv.ParseInt(words[2], 10, 32) // 0 if it is not a number
		pending.Retries = ptr.To(int32(retries))
	}
	return pending
}

func textOf(decision Decision) string {
	if decision.Blocked != "" {
		return "blocked"
	}
	text := strings.TrimPrefix(decision.Replica, "set-")
	if decision.Reason != "" {
		text += " " + string(decision.Reason)
	}
	if decision.Retries > 0 {
		text += fmt.Sprintf(" %d", decision.Retries)
	}
	if decision.Action != Nothing {
		text = string(decision.Action) + ": " + text
	}
	return text
}

// TestDecide decides about sets. The wanted text has the action, and what the set waits for after it.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		wanted            int
		replicas, pending string
		next              int
		want              string
	}{
		// Scale-out.
		{"an empty set", 0, "", "", 0, ""},
		{"the first replica", 1, "", "", 0, "create the Shoot: 0 ShootReconciling"},
		{"an ordinal is not used twice", 1, "", "", 3, "create the Shoot: 3 ShootReconciling"},
		{"the next ordinal after the last one", 3, "0 registered; 4 registered", "", 2, "create the Shoot: 5 ShootReconciling"},
		{"a replica without an ordinal", 2, "-1 registered", "", 0, "create the Shoot: 0 ShootReconciling"},
		{"the Shoot is reconciled", 2, "0 reconciling", "0 ShootReconciling", 1, "0 ShootReconciling"},
		{"the Shoot is ready", 2, "0 reconciled", "0 ShootReconciling", 1, "create the ManagedSeed: 0 ManagedSeedPreparing"},
		{"the ManagedSeed is prepared", 2, "0 preparing", "0 ManagedSeedPreparing", 1, "0 ManagedSeedPreparing"},
		{"the Seed is not ready", 2, "0 registered not-ready", "0 ManagedSeedPreparing", 1, "0 SeedNotReady"},
		{"the Shoot is not healthy", 2, "0 registered progressing", "0 SeedNotReady", 1, "0 ShootNotHealthy"},
		{"the Shoot is unhealthy", 2, "0 registered unhealthy", "0 SeedNotReady", 1, "0 ShootNotHealthy"},
		{"the Seed counts before the health", 2, "0 registered not-ready unhealthy", "0 SeedNotReady", 1, "0 SeedNotReady"},
		{"the next one after a ready one", 2, "0 registered", "0 ShootNotHealthy", 1, "create the Shoot: 1 ShootReconciling"},
		{"one at a time", 3, "0 registered; 1 reconciling", "1 ShootReconciling", 2, "1 ShootReconciling"},
		{"a replica that is not pending does not stop a scale-out", 3, "0 registered not-ready; 1 registered", "", 2, "create the Shoot: 2 ShootReconciling"},
		{"the pending replica is gone", 2, "0 registered", "1 ShootReconciling", 2, "create the Shoot: 2 ShootReconciling"},
		// Failed operations.
		{"a first retry", 1, "0 reconcile-failed", "0 ShootReconciling", 1, "retry the operation of the Shoot: 0 ShootReconciling 1"},
		{"retries are counted", 1, "0 reconcile-failed", "0 ShootReconciling 1", 1, "retry the operation of the Shoot: 0 ShootReconciling 2"},
		{"the count remains while the operation runs", 1, "0 reconciling", "0 ShootReconciling 2", 1, "0 ShootReconciling 2"},
		{"the last retry", 1, "0 reconcile-failed", "0 ShootReconciling 2", 1, "retry the operation of the Shoot: 0 ShootReconciling 3"},
		{"no more retries", 1, "0 reconcile-failed", "0 ShootReconciling 3", 1, "0 ShootReconcileFailed 3"},
		{"it stays given up", 1, "0 reconcile-failed", "0 ShootReconcileFailed 3", 1, "0 ShootReconcileFailed 3"},
		{"a given-up replica stops a scale-out", 2, "0 reconcile-failed", "0 ShootReconcileFailed 3", 1, "0 ShootReconcileFailed 3"},
		{"a person retries it", 1, "0 reconciling", "0 ShootReconcileFailed 3", 1, "0 ShootReconciling"},
		{"retries of another replica do not count", 2, "0 registered; 1 reconcile-failed", "0 ShootReconciling 3", 2, "retry the operation of the Shoot: 1 ShootReconciling 1"},
		{"retries for another reason do not count", 1, "0 delete-failed", "0 ShootReconciling 3", 1, "retry the operation of the Shoot: 0 ShootDeleting 1"},
		{"a failed deletion", 0, "0 delete-failed", "0 ShootDeleting 2", 1, "retry the operation of the Shoot: 0 ShootDeleting 3"},
		{"no more retries of a deletion", 0, "0 delete-failed", "0 ShootDeleting 3", 1, "0 ShootDeleteFailed 3"},
		{"a deletion stays given up", 0, "0 delete-failed", "0 ShootDeleteFailed 3", 1, "0 ShootDeleteFailed 3"},
		// At rest.
		{"all are ready", 2, "0 registered; 1 registered", "", 2, ""},
		{"the last one became ready", 2, "0 registered; 1 registered", "1 ShootNotHealthy", 2, ""},
		{"a Seed is not ready any more", 2, "0 registered; 1 registered not-ready", "", 2, "1 SeedNotReady"},
		{"a ManagedSeed was deleted by hand", 2, "0 reconciled; 1 registered", "", 2, "create the ManagedSeed: 0 ManagedSeedPreparing"},
		{"a ManagedSeed is being deleted by hand", 2, "0 seed-deleting; 1 registered", "", 2, "0 ManagedSeedDeleting"},
		{"a Shoot is being deleted by hand", 2, "0 registered; 1 deleting", "", 2, "1 ShootDeleting"},
		{"a Shoot was deleted by hand", 2, "0 registered", "1 ShootDeleting", 2, "create the Shoot: 2 ShootReconciling"},
		{"a Shoot failed at rest", 2, "0 reconcile-failed; 1 registered", "", 2, "retry the operation of the Shoot: 0 ShootReconciling 1"},
		{"the first of several by ordinal", 3, "2 registered unhealthy; 1 registered not-ready; 0 registered", "", 3, "1 SeedNotReady"},
		{"the pending one before others", 3, "0 registered not-ready; 1 registered; 2 registered unhealthy", "2 ShootNotHealthy", 3, "2 ShootNotHealthy"},
		{"nothing is known", 1, "0 unknown", "", 1, ""},
		// Scale-in.
		{"the lowest ordinal", 1, "0 registered; 1 registered", "", 2, "delete the ManagedSeed: 0 ManagedSeedDeleting"},
		{"the worse health before the ordinal", 2, "0 registered; 1 registered unhealthy; 2 registered progressing", "", 3, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"an unknown health before progress", 2, "0 registered; 1 registered progressing; 2 registered health-unknown", "", 3, "delete the ManagedSeed: 2 ManagedSeedDeleting"},
		{"the Seed before the health", 2, "0 registered unhealthy; 1 registered not-ready; 2 registered", "", 3, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"the state before the Seed", 2, "0 registered not-ready; 1 registered; 2 preparing", "", 3, "delete the ManagedSeed: 2 ManagedSeedDeleting"},
		{"a Shoot that is reconciled before one that has a ManagedSeed", 2, "0 preparing; 1 registered; 2 reconciled", "", 3, "delete the Shoot: 2 ShootDeleting"},
		{"a Shoot that is being reconciled before others", 1, "0 registered; 1 reconciling", "1 ShootReconciling", 2, "delete the Shoot: 1 ShootDeleting"},
		{"a failed Shoot before others", 1, "0 reconciling; 1 reconcile-failed", "0 ShootReconciling", 2, "delete the Shoot: 1 ShootDeleting"},
		{"a failed Shoot is not retried", 0, "0 reconcile-failed", "0 ShootReconciling 1", 1, "delete the Shoot: 0 ShootDeleting"},
		{"the ManagedSeed is being deleted", 1, "0 seed-deleting; 1 registered", "0 ManagedSeedDeleting", 2, "0 ManagedSeedDeleting"},
		{"the ManagedSeed is deleted", 1, "0 reconciled; 1 registered", "0 ManagedSeedDeleting", 2, "delete the Shoot: 0 ShootDeleting"},
		{"the Shoot is being deleted", 1, "0 deleting; 1 registered", "0 ShootDeleting", 2, "0 ShootDeleting"},
		{"the Shoot is deleted", 1, "1 registered", "0 ShootDeleting", 2, ""},
		{"one at a time is deleted", 1, "0 deleting; 1 registered; 2 registered", "0 ShootDeleting", 3, "0 ShootDeleting"},
		{"the next one is deleted", 1, "1 registered; 2 registered", "0 ShootDeleting", 3, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"a Shoot that a person deletes", 1, "0 registered; 1 deleting", "", 2, "1 ShootDeleting"},
		{"a ManagedSeed that a person deletes", 1, "0 registered; 1 seed-deleting", "", 2, "1 ManagedSeedDeleting"},
		{"a Seed with Shoots is kept", 1, "0 registered hosts; 1 registered", "", 2, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"a protected replica is kept", 1, "0 registered protected; 1 registered", "", 2, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"a protected replica is kept even if it is worse", 1, "0 reconcile-failed protected; 1 registered", "", 2, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"all have Shoots or are protected", 1, "0 registered protected; 1 registered hosts", "", 2, "blocked"},
		{"the pending one is protected", 1, "0 reconciled protected; 1 registered", "0 ManagedSeedDeleting", 2, "delete the ManagedSeed: 1 ManagedSeedDeleting"},
		{"scaled out again", 2, "0 reconciled; 1 registered", "0 ManagedSeedDeleting", 2, "create the ManagedSeed: 0 ManagedSeedPreparing"},
		// Deletion of the set.
		{"the set is deleted", 0, "0 registered; 1 registered", "", 2, "delete the ManagedSeed: 0 ManagedSeedDeleting"},
		{"the set is deleted while Shoots use it", 0, "0 registered hosts", "", 1, "blocked"},
		{"the last replica of the set is gone", 0, "", "0 ShootDeleting", 1, ""},
	} {
		got := textOf(Decide(Inputs{
			Set: "set", Wanted: test.wanted, Replicas: replicasOf(t, test.replicas), Pending: pendingOf(test.pending), Next: test.next, MaxRetries: 3,
		}))
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestCompare checks the order in which replicas are deleted, for all combinations: an earlier property decides before a later one.
func TestCompare(t *testing.T) {
	t.Parallel()
	var all []Replica
	for state := Unknown; state <= ManagedSeedRegistered; state++ {
		for _, ready := range []bool{false, true} {
			for health := Unhealthy; health <= Healthy; health++ {
				for ordinal := range 3 {
					all = append(all, Replica{State: state, SeedReady: ready, Health: health, Ordinal: ordinal})
				}
			}
		}
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	slices.SortFunc(reversed, compare)
	if !slices.Equal(all, reversed) {
		t.Error("the order is another one")
	}
}
