package live

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// jobs is the kind of Jobs, whose status shows whether they have finished.
var jobs = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

// finished reports whether an object is a Job that has succeeded or failed and has a TTL, after which it is deleted.
func finished(obj runtime.Object) bool {
	job, is := obj.(*batchv1.Job)
	return is && job.Spec.TTLSecondsAfterFinished != nil && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// finishedFor is how long the store remembers that a deleted Job had finished. It bridges the time until the inventory
// records it.
const finishedFor = time.Hour

// finishedJobs remembers the Jobs that were deleted after they had finished, and when. It is not safe for concurrent
// use.
type finishedJobs map[types.NamespacedName]time.Time

// add remembers a Job, and forgets those that were deleted long ago.
func (f finishedJobs) add(key types.NamespacedName, now time.Time) {
	for other, deleted := range f {
		if now.Sub(deleted) > finishedFor {
			delete(f, other)
		}
	}
	f[key] = now
}
