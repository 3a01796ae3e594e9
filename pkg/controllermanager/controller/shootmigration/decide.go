package shootmigration

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// Reasons of the constraint. Those of the destination are Gardener's.
const (
	reasonSource     = "SourceSeedUnready"
	reasonInDeletion = "DestinationSeedInDeletion"
	reasonUnready    = "DestinationSeedUnready"
	reasonReady      = "DestinationSeedReady"
	reasonShoot      = "ShootUnready"
	reasonManaged    = "ManagedSeedNotSupported"
)

// maxDetail limits the length of the message of another condition in the constraint, in bytes.
const maxDetail = 200

// Move is a Shoot with what decides whether its control plane may move.
type Move struct {
	Shoot *corev1beta1.Shoot
	// Source is the Seed that has the control plane, and Destination the one that it is bound to; nil if it does not exist.
	Source, Destination *corev1beta1.Seed
	// ManagedSeed is the ManagedSeed that makes the Shoot a Seed, empty for none.
	ManagedSeed string
}

// moves reports whether a Shoot is bound to another Seed than the one that has its control plane, and returns the names of both.
func moves(shoot *corev1beta1.Shoot) (source, destination string, is bool) {
	source, destination = ptr.Deref(shoot.Status.SeedName, ""), ptr.Deref(shoot.Spec.SeedName, "")
	return source, destination, source != "" && destination != "" && source != destination
}

// leaves reports whether the control plane has begun to leave its Seed.
func leaves(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.Type == corev1beta1.LastOperationTypeMigrate
}

// Decide returns the constraint ReadyForMigration; nil if the Shoot does not move. remove is set if it has one that must go: it
// remains as long as the last operation is Migrate (Gardener).
func (m Move) Decide(now time.Time) (constraint *corev1beta1.Condition, remove bool) {
	before := corev1beta1.FindCondition(m.Shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
	if _, _, is := moves(m.Shoot); !is {
		return nil, before != nil && !leaves(m.Shoot)
	}
	made := corev1beta1.Condition{
		Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionFalse,
	}
	if made.Reason, made.Message = m.obstacle(); made.Reason == "" {
		made.Status, made.Reason, made.Message = corev1beta1.ConditionTrue, reasonReady, "The Seed "+m.Destination.Name+" is ready for the control plane."
	}
	made = corev1beta1.KeepTimes(before, made, now)
	return &made, false
}

// obstacle returns why the control plane must not begin to move, as a reason and a message; empty if it may.
func (m Move) obstacle() (reason, message string) {
	if m.Destination != nil && m.Destination.DeletionTimestamp != nil {
		return reasonInDeletion, "The Seed " + m.Destination.Name + " is being deleted."
	}
	if why := m.unready(); why != "" {
		return reasonUnready, why
	}
	if leaves(m.Shoot) {
		return "", "" // the rest is about the begin of a move
	}
	if why := m.cannotLeave(); why != "" {
		return reasonSource, why
	}
	if why := m.unfinished(); why != "" {
		return reasonShoot, why
	}
	if m.ManagedSeed != "" {
		return reasonManaged, "The Shoot is a Seed, because of ManagedSeed " + m.ManagedSeed + ", and the Seed that has its control plane deploys its gardenlet: this version cannot hand that over."
	}
	return "", ""
}

// unready returns why the destination cannot take over the control plane, empty if it can.
func (m Move) unready() string {
	_, name, _ := moves(m.Shoot)
	seed := m.Destination
	switch {
	case seed == nil:
		return "The Seed " + name + " does not exist."
	case seed.Spec.Backup == nil:
		return "The Seed " + name + " has no backups, from which the control plane could be restored."
	case seed.Status.ObservedGeneration != seed.Generation:
		return fmt.Sprintf("The Seed %s is not ready: its gardenlet has not observed its generation %d.", name, seed.Generation)
	case seed.Status.Gardener == nil:
		return "The Seed " + name + " is not ready: its gardenlet has not reported its version."
	case m.Source != nil && m.Source.Status.Gardener != nil && m.Source.Status.Gardener.Version != seed.Status.Gardener.Version:
		return fmt.Sprintf("The gardenlets of both Seeds must have the same version, but that of %s has %s and that of %s has %s.",
			m.Source.Name, m.Source.Status.Gardener.Version, name, seed.Status.Gardener.Version)
	}
	return missing(seed, corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedBackupBucketsReady)
}

// cannotLeave returns why the control plane cannot leave its Seed, empty if it can. Its API server would stop, and never start again.
func (m Move) cannotLeave() string {
	name, _, _ := moves(m.Shoot)
	switch {
	case m.Source == nil:
		return "The Seed " + name + ", which has the control plane, does not exist, so nothing can hand the control plane over."
	case m.Source.Spec.Backup == nil:
		return "The Seed " + name + ", which has the control plane, has no backups."
	}
	return missing(m.Source, corev1beta1.SeedGardenletReady, corev1beta1.SeedBackupBucketsReady)
}

// missing returns which of these conditions of a Seed is not True, empty for none.
func missing(seed *corev1beta1.Seed, wanted ...corev1beta1.ConditionType) string {
	for _, kind := range wanted {
		status, message := corev1beta1.ConditionUnknown, ""
		if condition := corev1beta1.FindCondition(seed.Status.Conditions, kind); condition != nil {
			status, message = condition.Status, condition.Message
		}
		if status != corev1beta1.ConditionTrue {
			return strings.TrimSpace(fmt.Sprintf("The Seed %s is not ready: its condition %s is %s. %s", seed.Name, kind, status, conditiontext.Shorten(message, maxDetail)))
		}
	}
	return ""
}

// unfinished returns what the Shoot must end before its control plane can leave, empty for nothing. gardenlet has the same rules.
func (m Move) unfinished() string {
	last := m.Shoot.Status.LastOperation
	backups := corev1beta1.FindCondition(m.Shoot.Status.Constraints, corev1beta1.ShootBackupReady)
	wanted := m.Shoot.Spec.Hibernation != nil && ptr.Deref(m.Shoot.Spec.Hibernation.Enabled, false)
	switch {
	case last == nil,
		(last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeRestore) && last.State != corev1beta1.LastOperationStateSucceeded:
		return "The control plane is not complete yet: its creation or restoration must succeed first."
	case last.Type == corev1beta1.LastOperationTypeDelete, m.Shoot.DeletionTimestamp != nil:
		return "The Shoot is being deleted."
	case wanted && !m.Shoot.Status.IsHibernated:
		return "The cluster must hibernate completely first."
	case !wanted && m.Shoot.Status.IsHibernated:
		return "The cluster must wake up completely first."
	case backups != nil && backups.Status == corev1beta1.ConditionFalse:
		return "Etcd has no current backups, so its last snapshot could not be stored: " + conditiontext.Shorten(backups.Message, maxDetail)
	}
	return ""
}
