package seedlifecycle

import (
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// reasonUnknown and messages are those of Gardener.
const (
	reasonUnknown = "StatusUnknown"
	messageSeed   = "Gardenlet stopped posting status updates."
	messageShoot  = "Gardenlet stopped sending heartbeats."
)

// conditions of Shoots that become Unknown. constraints are those among the constraints.
var (
	conditions = []corev1beta1.ConditionType{
		corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
		corev1beta1.ShootEveryNodeReady, corev1beta1.ShootSystemComponentsHealthy,
	}
	constraints = []corev1beta1.ConditionType{corev1beta1.ShootHibernationPossible, corev1beta1.ShootMaintenancePreconditionsSatisfied}
)

// Observation is what this process knows about the Lease of a Seed.
type Observation struct {
	// Renewed is the time in the Lease; zero without a Lease.
	Renewed time.Time
	// Since is since when the Lease has not been renewed, as far as this process watched: its own outage does not count.
	Since time.Time
	// Looked is the time of the last observation.
	Looked time.Time
}

// Observe returns the observation after a look at the Lease. The first look counts as a renewal. The clock of a gardenlet may be
// wrong: a renewal counts from a time between the last look and now.
func (o Observation) Observe(renewed, now time.Time) Observation {
	switch {
	case o.Looked.IsZero():
		o.Since = now
	case !renewed.Equal(o.Renewed):
		o.Since = renewed
		if o.Since.Before(o.Looked) {
			o.Since = o.Looked
		}
		if o.Since.After(now) {
			o.Since = now
		}
	}
	o.Renewed, o.Looked = renewed, now
	return o
}

// Mass reports whether at least three and more than 30 % of all gardenlets seem to be dead at once: the cause is then likely in the garden.
func Mass(silent, all int) bool {
	const least, percent = 3, 30
	return silent >= least && silent*100 > all*percent
}

// isUnknown reports whether a condition has the status Unknown.
func isUnknown(all []corev1beta1.Condition, kind corev1beta1.ConditionType) bool {
	condition := corev1beta1.FindCondition(all, kind)
	return condition != nil && condition.Status == corev1beta1.ConditionUnknown
}

// SeedUnknown returns the condition GardenletReady of a Seed whose gardenlet is silent.
func SeedUnknown(seed *corev1beta1.Seed, now time.Time) corev1beta1.Condition {
	return corev1beta1.KeepTimes(corev1beta1.FindCondition(seed.Status.Conditions, corev1beta1.SeedGardenletReady), corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionUnknown, Reason: reasonUnknown, Message: messageSeed,
	}, now)
}

// ShootUnknown makes the conditions and constraints of a Shoot Unknown, and reports whether it changed any. Shoots without workers
// have no condition of nodes.
func ShootUnknown(shoot *corev1beta1.Shoot, now time.Time) bool {
	changed := false
	set := func(all []corev1beta1.Condition, kinds []corev1beta1.ConditionType) []corev1beta1.Condition {
		for _, kind := range kinds {
			if isUnknown(all, kind) || kind == corev1beta1.ShootEveryNodeReady && len(shoot.Spec.Provider.Workers) == 0 {
				continue
			}
			changed = true
			all = corev1beta1.SetCondition(all, corev1beta1.KeepTimes(corev1beta1.FindCondition(all, kind), corev1beta1.Condition{
				Type: kind, Status: corev1beta1.ConditionUnknown, Reason: reasonUnknown, Message: messageShoot,
			}, now))
		}
		return all
	}
	shoot.Status.Conditions, shoot.Status.Constraints = set(shoot.Status.Conditions, conditions), set(shoot.Status.Constraints, constraints)
	return changed
}

// expired reports whether the client certificate of the gardenlet has expired.
func expired(seed *corev1beta1.Seed, now time.Time) bool {
	until := seed.Status.ClientCertificateExpirationTimestamp
	return until != nil && !now.Before(until.Time)
}

// keep keeps the fields of a Shoot on which the decisions depend, for a cache.
func keep(kept, shoot *corev1beta1.Shoot) {
	kept.Status.SeedName = shoot.Status.SeedName
	if len(kept.Status.Conditions) == 0 {
		for _, condition := range shoot.Status.Conditions {
			kept.Status.Conditions = append(kept.Status.Conditions, corev1beta1.Condition{Type: condition.Type, Status: condition.Status})
		}
	}
	for _, constraint := range shoot.Status.Constraints {
		kept.Status.Constraints = append(kept.Status.Constraints, corev1beta1.Condition{Type: constraint.Type, Status: constraint.Status})
	}
}
