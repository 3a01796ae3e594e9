package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// Waits of a control plane that leaves its Seed.
const (
	waitSnapshot  = "last-snapshot"
	waitEntry     = "backup-entry"
	waitUnmovable = "movable"
	waitPrevious  = "previous-backups"
	waitMachines  = "machines"
)

// leaving is a stage in which a control plane leaves its Seed. Its bundles go after those of all earlier stages.
type leaving struct {
	// has reports whether a bundle goes in this stage. A bundle goes in the first stage that has it.
	has func(name string) bool
	// released keeps the objects of the bundles, and given makes extensions give them up first.
	released, given bool
	// kept returns why a bundle must not go yet.
	kept func(name string) string
	// gate adds to the plan what the later stages wait for, and returns false, until they may begin; nil for nothing.
	gate func(*flow.Plan, table.Table) bool
}

// stages returns the stages in which a control plane leaves its Seed: the objects in the shoot cluster are kept, the programs that make
// machines stop, extensions give up their objects, the other programs stop, and the last snapshot is stored. Then the destination gets the
// backups, and the rest is deleted.
// The programs of a control plane that hibernates do not run, so they go first.
func (in Inputs) stages() []leaving {
	named := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	early := func(name string) bool { return isOperation(name) && !in.isMigratedLate(name) }
	inCluster := []leaving{
		{has: isOfShoot, released: !in.asleepBefore()},
		{has: named(bundleClusterScaling)},
		{has: named(bundleMachines)},
		{has: func(name string) bool { return early(name) && name != bundleControlPlane }, given: true},
		{gate: in.machinesGone},
		{has: early, given: true},
	}
	stop := []leaving{
		{has: named(bundleControllerManager, bundleScheduler, bundleScaling)},
		{has: named(bundleResourceManager), kept: in.neededByExtensions},
		{has: programs},
	}
	stages := slices.Concat(inCluster, stop)
	if in.asleepBefore() {
		stages = slices.Concat(stop, inCluster)
	}
	return append(stages,
		leaving{has: isOperation, given: true},
		leaving{gate: in.lastSnapshot},
		leaving{gate: in.entryReleased},
		leaving{has: named(bundleEtcdMain, bundleEtcdEvents)},
		leaving{has: func(name string) bool { return name != in.Namespace }},
		leaving{has: named(in.Namespace)},
	)
}

// migration returns the plan of a control plane that leaves its Seed. It creates nothing, and deletes nothing that the destination or the
// nodes need: machines, infrastructure, DNS records and objects in the shoot cluster stay.
func (in Inputs) migration() flow.Plan {
	plan, contents := flow.Plan{Deleting: true}, in.contents()
	switch {
	case in.unmovable() != "":
		plan.Waits = []flow.Wait{{
			Name: waitUnmovable, Reason: in.unmovable() + ": set the binding of the Shoot back", Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		}}
		return plan
	case len(in.Bastions) > 0:
		plan.Waits = []flow.Wait{{Name: waitBastions, Reason: in.bastionNames() + " of the Shoot are in use, and end first", Deadline: in.Now}}
		return plan
	case in.Move.Source != nil:
		// Otherwise the next Seed would restore the backups of the previous one.
		plan.Waits = []flow.Wait{{Name: waitPrevious, Reason: "the backups in the bucket of the previous Seed are deleted first, once those in the new one are complete"}}
		return plan
	}
	left, before := slices.Clone(in.Emitted), []flow.Key{}
	for _, stage := range in.stages() {
		if stage.gate != nil {
			if len(before) > 0 || !stage.gate(&plan, contents) {
				return plan
			}
			continue
		}
		var going []flow.Key
		left = slices.DeleteFunc(left, func(key flow.Key) bool {
			has := stage.has(key.Name)
			if has {
				going = append(going, key)
			}
			return has
		})
		for _, key := range going {
			plan.Tombstones = append(plan.Tombstones, in.leave(stage, contents, key, before))
		}
		before = append(before, going...)
	}
	return plan
}

// leave returns the tombstone of a bundle.
func (in Inputs) leave(stage leaving, contents table.Table, key flow.Key, before []flow.Key) flow.Tombstone {
	tombstone := contents.Tombstone(key)
	tombstone.After = slices.Clone(before)
	switch {
	case stage.released:
		tombstone.Release = flow.ReleaseObjects
	case stage.given:
		tombstone.Confirm, tombstone.Migrate, tombstone.Kept = true, in.Now, in.notGivenUp(key.Name)
	case stage.kept != nil:
		tombstone.Kept = stage.kept(key.Name)
	}
	return tombstone
}

// notGivenUp returns why the object of an extension must not be deleted yet.
func (in Inputs) notGivenUp(name string) string {
	if !in.Move.Known {
		return "it is not known whether its extension has given it up"
	}
	return in.Move.Kept[name]
}

// neededByExtensions returns why the resource-manager of the shoot must not stop yet. While the Shoot hibernates, it does not run.
func (in Inputs) neededByExtensions(string) string {
	switch {
	case in.asleepBefore():
		return ""
	case !in.Move.Known:
		return "it is not known whether extensions have objects in the cluster"
	case len(in.Move.Foreign) > 0:
		return "extensions have not given up their objects in the cluster: " + strings.Join(in.Move.Foreign, ", ")
	}
	return ""
}

// isMovedAway reports whether the BackupEntry belongs to the destination already. This was requested after the last snapshot.
func (in Inputs) isMovedAway() bool {
	return in.Entry != nil && ptr.Deref(in.Entry.Spec.SeedName, "") == ptr.Deref(in.Shoot.Spec.SeedName, "")
}

// lastSnapshot adds the main etcd with the request for its last snapshot, until it is stored. If its bundle was deleted by hand, etcd
// continues with its volume or restores the backups, so that the snapshot never is one of an empty database.
func (in Inputs) lastSnapshot(plan *flow.Plan, contents table.Table) bool {
	if in.isMovedAway() || in.Move.Snapshot {
		return true
	}
	part, _ := contents.Part(bundleEtcdMain)
	part.Needs, part.NeedsAsleep, part.Adjust = nil, nil, in.adjustSnapshot
	plan.Recreated = append(plan.Recreated, in.key(bundleEtcdMain))
	contents.Add(plan, part)
	plan.Waits = append(plan.Waits, flow.Wait{Name: waitSnapshot, Reason: "the last snapshot of etcd is not stored yet"})
	return false
}

// adjustSnapshot makes the health of the main etcd depend on its last snapshot.
func (in Inputs) adjustSnapshot(bundle *flow.Bundle) {
	adjustEtcd(bundle)
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{etcd.SnapshotHealth(etcd.FinalSnapshot(in.Move.Token))}
	bundle.Choices = map[string]string{choiceSnapshot: in.Move.Token, choiceRestoring: "true"}
}

// entryReleased waits until the extension of this Seed has given up the BackupEntry, so that the destination can have it.
func (in Inputs) entryReleased(plan *flow.Plan, _ table.Table) bool {
	if in.isMovedAway() {
		last, status := in.Entry.Status.LastOperation, in.Entry.Status
		if status.ObservedGeneration == in.Entry.Generation && ptr.Deref(status.SeedName, "") == "" && last != nil &&
			last.Type == corev1beta1.LastOperationTypeMigrate && last.State == corev1beta1.LastOperationStateSucceeded {
			return true
		}
		if ptr.Deref(status.SeedName, "") == *in.Shoot.Spec.SeedName {
			return true // the destination has it
		}
	}
	plan.Waits = append(plan.Waits, flow.Wait{Name: waitEntry, Reason: "the backups are not handed over to the Seed " + *in.Shoot.Spec.SeedName + " yet"})
	return false
}

// handsOver reports whether the BackupEntry must be handed over to the destination now.
func (in Inputs) handsOver(plan flow.Plan) bool {
	waits := slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool { return wait.Name == waitEntry })
	return in.Phase == phaseMigrate && waits && in.Entry != nil && !in.isMovedAway()
}
