// Package shoothibernation switches Shoots off and on at the times of their hibernation schedules.
package shoothibernation

import (
	"cmp"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // the image of the program has no time zones

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

const (
	// spread is the time within which equal schedules of different Shoots are executed, so that not all clusters are created at
	// the same second, which infrastructures refuse.
	spread = 10 * time.Minute
	// horizon is how far schedules are looked up in the past, whatever the configuration.
	horizon = 7 * 24 * time.Hour
)

// Decision is what to do about a Shoot.
type Decision struct {
	// Hibernated is the state that a schedule requires, or nil if no time of a schedule has passed since the last decision.
	Hibernated *bool
	// Executed is the time up to which schedules are executed, if Hibernated is set.
	Executed time.Time
	// Next is when to decide again, or zero.
	Next time.Time
}

// Decide returns what to do about a Shoot at a time. Times of schedules that passed longer ago than the deadline are
// skipped. Of several times that passed, the last one counts, and at the same time switching on. Each Shoot executes its
// schedules later by the same duration of less than ten minutes. The error names schedules that cannot be parsed; the
// others are executed.
func Decide(shoot *corev1beta1.Shoot, deadline time.Duration, now time.Time) (Decision, error) {
	if shoot.Spec.Hibernation == nil || isIgnored(shoot) {
		return Decision{}, nil
	}
	offset := delay(shoot)
	until := now.Add(-offset)
	from := shoot.CreationTimestamp.Time
	if last := shoot.Status.LastHibernationTriggerTime; last != nil {
		from = last.Time
	}
	if oldest := until.Add(-min(deadline, horizon)); from.Before(oldest) {
		from = oldest
	}
	transitions, err := transitionsOf(shoot.Spec.Hibernation.Schedules)
	var decision Decision
	var latest time.Time
	for _, each := range transitions {
		if at := each.latest(from, until); !at.IsZero() && (at.After(latest) || at.Equal(latest) && !each.hibernated) {
			latest, decision.Hibernated, decision.Executed = at, ptr.To(each.hibernated), until
		}
		if next := each.next(until); !next.IsZero() && (decision.Next.IsZero() || next.Add(offset).Before(decision.Next)) {
			decision.Next = next.Add(offset)
		}
	}
	return decision, err
}

// delay returns by how much a Shoot executes its schedules later: whole seconds, less than spread.
func delay(shoot *corev1beta1.Shoot) time.Duration {
	const perMinute = 60 // Spread returns minutes
	return maintenance.Spread(shoot.UID, spread*perMinute) / perMinute
}

// isIgnored reports whether schedules of a Shoot are not executed: it is being deleted, or has failed and waits for a
// change of its specification or a retry.
func isIgnored(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	failed := last != nil && last.State == corev1beta1.LastOperationStateFailed
	return shoot.DeletionTimestamp != nil || failed && shoot.Generation == shoot.Status.ObservedGeneration
}

// transition is a schedule with the state that it requires.
type transition struct {
	schedule

	hibernated bool
}

// transitionsOf returns the starts and ends of all schedules that can be parsed.
func transitionsOf(schedules []corev1beta1.HibernationSchedule) (found []transition, err error) {
	for i, each := range schedules {
		location, failure := time.LoadLocation(cmp.Or(ptr.Deref(each.Location, ""), "UTC"))
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("spec.hibernation.schedules[%d].location is not a time zone, such as Europe/Berlin: %w", i, failure))
			continue
		}
		for _, one := range []struct {
			field      string
			expression *string
			hibernated bool
		}{{"start", each.Start, true}, {"end", each.End, false}} {
			if one.expression == nil {
				continue
			}
			parsed, failure := parse(*one.expression, location)
			if failure != nil {
				err = errors.Join(err, fmt.Errorf("spec.hibernation.schedules[%d].%s: %w", i, one.field, failure))
				continue
			}
			found = append(found, transition{parsed, one.hibernated})
		}
	}
	return found, err
}

// Keep copies the fields on which decisions depend into a cached Shoot.
func Keep(into, shoot *corev1beta1.Shoot) {
	into.CreationTimestamp, into.Generation = shoot.CreationTimestamp, shoot.Generation
	into.Spec.Hibernation = shoot.Spec.Hibernation
	into.Status.LastHibernationTriggerTime = shoot.Status.LastHibernationTriggerTime
	into.Status.ObservedGeneration = shoot.Status.ObservedGeneration
	if last := shoot.Status.LastOperation; last != nil && into.Status.LastOperation == nil {
		into.Status.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
	}
}
