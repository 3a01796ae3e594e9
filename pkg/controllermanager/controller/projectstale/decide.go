package projectstale

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const day = 24 * time.Hour

// Periods define when unused Projects are stale, and when they are deleted.
type Periods struct {
	// MinimumLifetime is the age, and the time since the last activity, before which a Project is not stale.
	MinimumLifetime time.Duration
	// Grace is how long a Project is stale before the time of its deletion is announced.
	Grace time.Duration
	// Expiration is how long a Project is stale before it is deleted.
	Expiration time.Duration
	// Sync is the time after which a Project is looked at again if nothing is due before.
	Sync time.Duration
}

// State is what a decision depends on, besides the Project.
type State struct {
	// Skipped is set if the namespace has the annotation that excludes its Project.
	Skipped bool
	// Used is set if something uses the namespace.
	Used bool
	Now  time.Time
}

// Decision is what to do with a Project.
type Decision struct {
	// StaleSince and AutoDelete are the timestamps that the status should have; nil for none.
	StaleSince, AutoDelete *metav1.Time
	// Delete is set if the time of the deletion has come.
	Delete bool
	// Next is when to decide again.
	Next time.Time
}

// Decide decides whether a Project is stale. A time of deletion that was announced is never moved to an earlier time.
func Decide(project *corev1beta1.Project, state State, periods Periods) Decision {
	next := func(at time.Time) time.Time {
		if last := state.Now.Add(periods.Sync); at.IsZero() || at.After(last) {
			return last
		}
		return at
	}
	active := project.CreationTimestamp.Time
	if last := project.Status.LastActivityTimestamp; last != nil && last.After(active) {
		active = last.Time
	}
	until := active.Add(periods.MinimumLifetime)
	switch {
	case state.Skipped, state.Used:
		return Decision{Next: next(time.Time{})}
	case state.Now.Before(until):
		return Decision{Next: next(until)}
	}
	since := project.Status.StaleSinceTimestamp
	if since == nil {
		since = &metav1.Time{Time: state.Now.Truncate(time.Second)} // the API stores whole seconds
	}
	if announced := since.Add(periods.Grace); state.Now.Before(announced) {
		return Decision{StaleSince: since, Next: next(announced)}
	}
	deleted := &metav1.Time{Time: since.Add(periods.Expiration)}
	if before := project.Status.StaleAutoDeleteTimestamp; before != nil && before.After(deleted.Time) {
		deleted = before
	}
	return Decision{StaleSince: since, AutoDelete: deleted, Delete: !state.Now.Before(deleted.Time), Next: next(deleted.Time)}
}

// Limits of deletions at once.
const (
	// allowed is the number of Projects that may be due at once in any garden.
	allowed = 3
	// percentage is the part of all Projects that may be due at once.
	percentage = 30
)

// TooMany reports whether more Projects are due to be deleted than is plausible: a wrong clock or configuration is more likely than that all of
// them are unused.
func TooMany(projects []corev1beta1.Project, now time.Time) bool {
	due := 0
	for i := range projects {
		if at := projects[i].Status.StaleAutoDeleteTimestamp; at != nil && !now.Before(at.Time) && projects[i].DeletionTimestamp == nil {
			due++
		}
	}
	return due > allowed && due*100 > percentage*len(projects)
}
