package shootmigration

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// readySeed returns a Seed that can host control planes.
func readySeed(name string) *corev1beta1.Seed {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	seed.Spec.Backup = &corev1beta1.Backup{}
	seed.Status.ObservedGeneration, seed.Status.Gardener = 2, &corev1beta1.Gardener{Version: "v1"}
	for _, kind := range []corev1beta1.ConditionType{
		corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedBackupBucketsReady,
	} {
		seed.Status.Conditions = append(seed.Status.Conditions, corev1beta1.Condition{Type: kind, Status: corev1beta1.ConditionTrue})
	}
	return seed
}

// bound returns a Shoot that was bound to another Seed.
func bound(change ...func(*Move)) Move {
	move := Move{Shoot: &corev1beta1.Shoot{}, Source: readySeed("source"), Destination: readySeed("destination")}
	move.Shoot.Spec.SeedName, move.Shoot.Status.SeedName = ptr.To("destination"), ptr.To("source")
	move.Shoot.Spec.Provider.Type = "local"
	operation(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded)(&move)
	for _, each := range change {
		each(&move)
	}
	return move
}

func operation(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) func(*Move) {
	return func(move *Move) {
		move.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: state}
	}
}

func constrained(move *Move) {
	move.Shoot.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionTrue}}
}

func hibernation(wanted, is bool) func(*Move) {
	return func(move *Move) {
		move.Shoot.Spec.Hibernation, move.Shoot.Status.IsHibernated = &corev1beta1.Hibernation{Enabled: &wanted}, is
	}
}

const (
	create, migrate, restore = corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeRestore
	failing, succeeded       = corev1beta1.LastOperationStateError, corev1beta1.LastOperationStateSucceeded
)

// TestDecide checks the constraint, as reason and a part of the message. "gone" stands for a constraint that is removed.
func TestDecide(t *testing.T) {
	stays := func(move *Move) { move.Shoot.Spec.SeedName = move.Shoot.Status.SeedName }
	for name, test := range map[string]struct {
		move Move
		want string
	}{
		"ready":                            {bound(), "DestinationSeedReady: The Seed destination is ready"},
		"stays":                            {bound(stays), ""},
		"has no seed yet":                  {bound(func(move *Move) { move.Shoot.Status.SeedName = nil }), ""},
		"bound back":                       {bound(stays, constrained), "gone"},
		"arrived":                          {bound(stays, constrained, operation(migrate, succeeded)), ""},
		"restores":                         {bound(stays, constrained, operation(restore, failing)), "gone"},
		"destination in deletion":          {bound(func(move *Move) { move.Destination.DeletionTimestamp = &metav1.Time{Time: now} }), "DestinationSeedInDeletion: "},
		"destination that does not exist":  {bound(func(move *Move) { move.Destination = nil }), "DestinationSeedUnready: The Seed destination does not exist"},
		"destination without backups":      {bound(func(move *Move) { move.Destination.Spec.Backup = nil }), "DestinationSeedUnready: The Seed destination has no backups"},
		"source without backups":           {bound(func(move *Move) { move.Source.Spec.Backup = nil }), "SourceSeedUnready: The Seed source, which"},
		"source that does not exist":       {bound(func(move *Move) { move.Source = nil }), "SourceSeedUnready: The Seed source, which"},
		"source that went while it leaves": {bound(operation(migrate, failing), func(move *Move) { move.Source = nil }), "DestinationSeedReady: "},
		"source silent": {bound(func(move *Move) { move.Source.Status.Conditions[0].Status = corev1beta1.ConditionUnknown }),
			"SourceSeedUnready: The Seed source is not ready: its condition GardenletReady is Unknown"},
		"bucket of the source broken": {bound(func(move *Move) {
			move.Source.Status.Conditions[2] = corev1beta1.Condition{Type: corev1beta1.SeedBackupBucketsReady, Status: corev1beta1.ConditionFalse, Message: "access denied"}
		}), "SourceSeedUnready: The Seed source is not ready: its condition BackupBucketsReady is False. access denied"},
		"components of the source broken": {bound(func(move *Move) { move.Source.Status.Conditions[1].Status = corev1beta1.ConditionFalse }), "DestinationSeedReady: "},
		"bucket of the destination not known": {bound(func(move *Move) { move.Destination.Status.Conditions = move.Destination.Status.Conditions[:2] }),
			"DestinationSeedUnready: The Seed destination is not ready: its condition BackupBucketsReady is Unknown"},
		"other version":        {bound(func(move *Move) { move.Source.Status.Gardener.Version = "v0" }), "that of source has v0 and that of destination has v1"},
		"version not reported": {bound(func(move *Move) { move.Destination.Status.Gardener = nil }), "has not reported its version"},
		"not observed":         {bound(func(move *Move) { move.Destination.Status.ObservedGeneration = 1 }), "not observed its generation 2"},
		"gardenlet silent": {bound(func(move *Move) { move.Destination.Status.Conditions[0].Status = corev1beta1.ConditionUnknown }),
			"DestinationSeedUnready: The Seed destination is not ready: its condition GardenletReady is Unknown"},
		"components not known": {bound(func(move *Move) { move.Destination.Status.Conditions = move.Destination.Status.Conditions[:1] }),
			"its condition SeedSystemComponentsHealthy is Unknown"},
		"not created":    {bound(operation(create, failing)), "ShootUnready: "},
		"created":        {bound(operation(create, succeeded)), "DestinationSeedReady: "},
		"an error":       {bound(operation(corev1beta1.LastOperationTypeReconcile, failing)), "DestinationSeedReady: "},
		"not restored":   {bound(operation(restore, failing)), "ShootUnready: "},
		"no operation":   {bound(func(move *Move) { move.Shoot.Status.LastOperation = nil }), "ShootUnready: "},
		"in deletion":    {bound(func(move *Move) { move.Shoot.DeletionTimestamp = &metav1.Time{Time: now} }), "ShootUnready: The Shoot is being deleted"},
		"a managed seed": {bound(func(move *Move) { move.ManagedSeed = "blue" }), "ManagedSeedNotSupported: The Shoot is a Seed, because of ManagedSeed blue"},
		"backups overdue": {bound(func(move *Move) {
			move.Shoot.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootBackupReady, Status: corev1beta1.ConditionFalse, Message: "the store refuses"}}
		}), "ShootUnready: Etcd has no current backups, so its last snapshot could not be stored: the store refuses"},
		"hibernated":   {bound(hibernation(true, true)), "DestinationSeedReady: "},
		"falls asleep": {bound(hibernation(true, false)), "ShootUnready: The cluster must hibernate"},
		"wakes up":     {bound(hibernation(false, true)), "ShootUnready: The cluster must wake up"},

		"leaves": {bound(operation(migrate, failing), hibernation(true, false), constrained), "DestinationSeedReady: "},
		"leaves, not ready any more": {bound(operation(migrate, failing), constrained, func(move *Move) { move.Destination.Status.Conditions = nil }),
			"DestinationSeedUnready: "},
	} {
		kept := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: test.move.Shoot.Spec.Provider}}
		kept.DeletionTimestamp = test.move.Shoot.DeletionTimestamp
		Keep(kept, test.move.Shoot)
		cached := test.move
		cached.Shoot = kept
		for what, each := range map[string]Move{"the Shoot": test.move, "what the cache keeps": cached} {
			constraint, remove := each.Decide(now)
			got := map[bool]string{true: "gone"}[remove]
			if constraint != nil {
				got = constraint.Reason + ": " + constraint.Message
				if (constraint.Status == corev1beta1.ConditionTrue) != (constraint.Reason == reasonReady) {
					t.Errorf("%s, %s: %s with %s", name, what, constraint.Status, got)
				}
			}
			if got != test.want && (test.want == "" || test.want == "gone" || !strings.Contains(got, test.want)) {
				t.Errorf("%s, %s: %q instead of %q", name, what, got, test.want)
			}
		}
	}
}

// TestTimes checks that an unchanged constraint keeps its times, so that it is not written again.
func TestTimes(t *testing.T) {
	move := bound()
	first, _ := move.Decide(now)
	move.Shoot.Status.Constraints = []corev1beta1.Condition{*first}
	if again, _ := move.Decide(now.Add(time.Hour)); !again.LastUpdateTime.Equal(&first.LastUpdateTime) {
		t.Errorf("it changes from %+v to %+v", first, again)
	}
}
