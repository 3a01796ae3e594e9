package projectactivity

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// recent is the age up to which an object that is new to the cache counts as activity. Older ones are new because the process has started.
const recent = time.Hour

// interval is the time between two writes of the activity in a Project. Each new Shoot is an activity: a write for each was a tenth of the
// requests of many that were scheduled.
const interval = time.Minute

// Created returns the time of the activity of creating an object that is new to the cache, and false if the object is old.
func Created(object client.Object, now time.Time) (time.Time, bool) {
	at := object.GetCreationTimestamp().Time
	return at, now.Sub(at) <= recent
}

// Updated reports whether a change of an object is activity. Changes of the status of a Shoot or BackupEntry are not.
func Updated(before, after client.Object) bool {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return false
	}
	switch after.(type) {
	case *corev1beta1.Shoot, *corev1beta1.BackupEntry:
		return before.GetGeneration() != after.GetGeneration()
	default:
		return true
	}
}

// Wait returns how long a later activity than the recorded one waits until it is recorded.
func Wait(project *corev1beta1.Project, now time.Time) time.Duration {
	last := project.Status.LastActivityTimestamp
	if last == nil {
		return 0
	}
	return max(0, min(interval, last.Add(interval).Sub(now)))
}

// Later reports whether an activity is later than the one that a Project has recorded, in whole seconds, as the API stores times.
func Later(project *corev1beta1.Project, at time.Time) bool {
	last := project.Status.LastActivityTimestamp
	return last == nil || at.Truncate(time.Second).After(last.Time)
}

// Keep keeps the fields of a Shoot on which decisions depend, for a cache.
func Keep(kept, shoot *corev1beta1.Shoot) {
	kept.Generation, kept.CreationTimestamp = shoot.Generation, shoot.CreationTimestamp
}
