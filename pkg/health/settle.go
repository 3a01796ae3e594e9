package health

import (
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// PendingIfUnobserved marks subjects as pending whose controller has not observed the last change yet. Their health
// will be known soon.
func PendingIfUnobserved(subjects []Subject) []Subject {
	subjects = slices.Clone(subjects)
	for i := range subjects {
		// Some kinds are unhealthy for reasons that do not depend on their last change.
		if subjects[i].Verdict.Unobserved && strings.HasPrefix(subjects[i].Verdict.Unhealthy, outdatedPrefix) {
			subjects[i].Pending, subjects[i].Verdict = true, Verdict{}
		}
	}
	return subjects
}

// Delays before a condition reports a different result. They prevent flapping while Pods are replaced one by one.
const (
	// rolloutDelay applies to unhealthy objects during and just after a rollout: starting Pods are not ready. It also
	// applies to changes that the controller of an object, which may be busy or starting, has not observed.
	rolloutDelay = 30 * time.Second
	// recoveryDelay applies to objects that are healthy again during a rollout: the next Pod may follow. It does not apply
	// to objects that were never healthy. Others may depend on them, and rolloutDelay covers the next Pod.
	recoveryDelay = 5 * time.Second
	// startDelay applies to objects that are unhealthy just after they were created.
	startDelay = 2 * time.Second
	// unknownAfter applies to results that are no longer known, for example while the API server restarts.
	unknownAfter = 5 * time.Second
	// wordingInterval is the minimum time between two updates of the message of a condition whose status does not change.
	wordingInterval = 5 * time.Second
)

// Settling tracks a pending change of the status of a condition. The zero value is ready for use.
type Settling struct {
	to    resourcesv1alpha1.ConditionStatus
	since time.Time
	// wasTrue is set once the condition has been True.
	wasTrue bool
}

// Settle returns what a condition reports, given its previous state and the current finding. The duration is the time
// until the condition may have to change without another event; 0 means never. Rolling reports whether an object is
// being rolled out, or was until a moment ago.
func (s *Settling) Settle(before resourcesv1alpha1.Condition, found resourcesv1alpha1.Statement, rolling bool, now time.Time,
) (resourcesv1alpha1.Statement, time.Duration) {
	s.wasTrue = s.wasTrue || before.Status == resourcesv1alpha1.ConditionTrue
	reported := resourcesv1alpha1.Statement{Status: before.Status, Reason: before.Reason, Message: before.Message}
	if found.Status == before.Status {
		s.end()
		if wait := before.LastUpdateTime.Add(wordingInterval).Sub(now); found != reported && found.Reason == reported.Reason && wait > 0 {
			return reported, wait
		}
		return found, 0
	}
	if s.to != found.Status {
		since := now
		if before.Status == resourcesv1alpha1.ConditionTrue && s.to == resourcesv1alpha1.ConditionUnknown &&
			found.Status == resourcesv1alpha1.ConditionFalse {
			since = s.since // it was not healthy before, either
		}
		s.to, s.since = found.Status, since
	}
	if wait := s.since.Add(s.delayFor(before, found, rolling)).Sub(now); wait > 0 {
		return reported, wait
	}
	s.end()
	return found, 0
}

// end records that no change of the condition is pending.
func (s *Settling) end() { s.to, s.since = "", time.Time{} }

// delayFor returns how long a different result must last before a condition reports it.
func (s *Settling) delayFor(before resourcesv1alpha1.Condition, found resourcesv1alpha1.Statement, rolling bool) time.Duration {
	const isTrue, isFalse, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	healthy := before.Type == resourcesv1alpha1.ResourcesHealthy
	switch {
	case before.Reason == resourcesv1alpha1.ReasonDeletionPending, before.Reason == resourcesv1alpha1.ReasonManagedResourceIgnored:
		return 0 // these reasons do not describe health
	case rolling && found == HealthPending() && before.Status != unknown:
		return rolloutDelay
	case found.Status == unknown && before.Status != unknown:
		return unknownAfter
	case !healthy || !rolling:
		return 0
	case before.Status == isTrue && found.Status == isFalse:
		return rolloutDelay
	case before.Status == isFalse && found.Status == isTrue && s.wasTrue:
		return recoveryDelay
	case before.Status == unknown && found.Status == isFalse:
		return startDelay
	}
	return 0
}

// Rollout tracks when objects were last rolled out. The zero value is ready for use.
type Rollout struct {
	last time.Time
}

// Rolling reports whether objects are being rolled out, according to the subjects or to the condition
// ResourcesProgressing, or were within rolloutDelay: the last Pods may not be ready yet.
func (r *Rollout) Rolling(before resourcesv1alpha1.Condition, subjects []Subject, now time.Time) bool {
	if before.Status == resourcesv1alpha1.ConditionTrue || slices.ContainsFunc(subjects, func(subject Subject) bool {
		return subject.Verdict.Progressing != "" || subject.Verdict.Unobserved
	}) {
		r.last = now
	}
	return !r.last.IsZero() && now.Sub(r.last) < rolloutDelay
}
