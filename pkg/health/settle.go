package health

import (
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// PendingIfUnobserved marks those subjects as pending whose controller has not observed the last change yet:
// whether they are healthy will be known in a moment.
func PendingIfUnobserved(subjects []Subject) []Subject {
	subjects = slices.Clone(subjects)
	for i := range subjects {
		// Some kinds are judged by what does not depend on their last change.
		if subjects[i].Verdict.Unobserved && strings.HasPrefix(subjects[i].Verdict.Unhealthy, outdatedPrefix) {
			subjects[i].Pending, subjects[i].Verdict = true, Verdict{}
		}
	}
	return subjects
}

// How long what is found has to last before a condition says it, so that nothing flaps while Pods are replaced one by one.
const (
	// rolloutDelay is for what is unhealthy during a rollout and after it: Pods that start are not ready. It is also for what has not
	// been taken in by its controller, which may be busy or be starting.
	rolloutDelay = 30 * time.Second
	// recoveryDelay is for what is healthy again during a rollout: the next Pod may follow. What was never healthy need not wait: others may
	// depend on it, and the next Pod has rolloutDelay.
	recoveryDelay = 5 * time.Second
	// startDelay is for what is unhealthy just after it was created.
	startDelay = 2 * time.Second
	// unknownAfter is the delay for results that are no longer known, as when the API server is restarted.
	unknownAfter = 5 * time.Second
	// wordingInterval is how often at most a condition that stays the same says so in other words.
	wordingInterval = 5 * time.Second
)

// Settling remembers since when a condition would have to change its status. The zero value is ready for use.
type Settling struct {
	to    resourcesv1alpha1.ConditionStatus
	since time.Time
	// wasTrue is set once the condition was True.
	wasTrue bool
}

// Settle returns what a condition says, given what it said before and what is found now, and how soon that may have to
// change without anything else happening; 0 for never. Rolling reports whether an object is being rolled out, or was just now.
func (s *Settling) Settle(before resourcesv1alpha1.Condition, found resourcesv1alpha1.Statement, rolling bool, now time.Time,
) (resourcesv1alpha1.Statement, time.Duration) {
	s.wasTrue = s.wasTrue || before.Status == resourcesv1alpha1.ConditionTrue
	said := resourcesv1alpha1.Statement{Status: before.Status, Reason: before.Reason, Message: before.Message}
	if found.Status == before.Status {
		s.end()
		if wait := before.LastUpdateTime.Add(wordingInterval).Sub(now); found != said && found.Reason == said.Reason && wait > 0 {
			return said, wait
		}
		return found, 0
	}
	if s.to != found.Status {
		since := now
		if before.Status == resourcesv1alpha1.ConditionTrue && s.to == resourcesv1alpha1.ConditionUnknown && found.Status == resourcesv1alpha1.ConditionFalse {
			since = s.since // it was not well before, either
		}
		s.to, s.since = found.Status, since
	}
	if wait := s.since.Add(s.delayFor(before, found, rolling)).Sub(now); wait > 0 {
		return said, wait
	}
	s.end()
	return found, 0
}

// end records that the condition need not change.
func (s *Settling) end() { s.to, s.since = "", time.Time{} }

// delayFor returns how long a different result must last before a condition reports it.
func (s *Settling) delayFor(before resourcesv1alpha1.Condition, found resourcesv1alpha1.Statement, rolling bool) time.Duration {
	const isTrue, isFalse, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	healthy := before.Type == resourcesv1alpha1.ResourcesHealthy
	switch {
	case before.Reason == resourcesv1alpha1.ReasonDeletionPending, before.Reason == resourcesv1alpha1.ReasonManagedResourceIgnored:
		return 0 // that was not said about health
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

// Rollout remembers when objects were last rolled out. The zero value is ready for use.
type Rollout struct {
	last time.Time
}

// Rolling reports whether objects are being rolled out, as found now or as the condition ResourcesProgressing reports, or were until
// a moment ago: the last Pods may not be ready yet.
func (r *Rollout) Rolling(before resourcesv1alpha1.Condition, subjects []Subject, now time.Time) bool {
	if before.Status == resourcesv1alpha1.ConditionTrue || slices.ContainsFunc(subjects, func(subject Subject) bool {
		return subject.Verdict.Progressing != "" || subject.Verdict.Unobserved
	}) {
		r.last = now
	}
	return !r.last.IsZero() && now.Sub(r.last) < rolloutDelay
}
