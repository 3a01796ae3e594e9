package seedbackupbuckets

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// Reasons of the condition, which are Gardener's.
const (
	reasonAvailable = "BackupBucketsAvailable"
	reasonError     = "BackupBucketsError"
	reasonGone      = "BackupBucketsGone"
)

const (
	// maxNamed limits the number of buckets in a message, maxDetail the length of an error in bytes.
	maxNamed, maxDetail = 10, 200
)

// Decide returns the condition BackupBucketsReady of a Seed with these buckets, or nil if it needs none: it has no backups, no
// bucket, and never had the condition. A failure after a success is Progressing until the threshold has passed. next is when the
// condition changes without an event, or zero for never.
func Decide(seed *corev1beta1.Seed, buckets []corev1beta1.BackupBucket, threshold time.Duration, now time.Time) (condition *corev1beta1.Condition, next time.Time) {
	before := corev1beta1.FindCondition(seed.Status.Conditions, corev1beta1.SeedBackupBucketsReady)
	if len(buckets) == 0 && seed.Spec.Backup == nil && before == nil {
		return nil, time.Time{}
	}
	made := corev1beta1.Condition{
		Type: corev1beta1.SeedBackupBucketsReady, Status: corev1beta1.ConditionTrue, Reason: reasonAvailable, Message: "Backup Buckets are available.",
	}
	switch failures := failuresOf(buckets); {
	case len(buckets) == 0:
		made.Reason, made.Message = reasonGone, "Backup Buckets are gone."
		made.Status, next = corev1beta1.DelayFailure(before, corev1beta1.ConditionUnknown, threshold, now)
	case failures != "":
		made.Reason, made.Message = reasonError, "The following BackupBuckets have issues: "+failures
		made.Status, next = corev1beta1.DelayFailure(before, corev1beta1.ConditionFalse, threshold, now)
	}
	made = corev1beta1.KeepTimes(before, made, now)
	return &made, next
}

// failuresOf names the buckets with errors, sorted, or returns an empty text.
func failuresOf(buckets []corev1beta1.BackupBucket) string {
	var found []string
	for _, bucket := range buckets {
		if failure := bucket.Status.LastError; failure != nil {
			found = append(found, fmt.Sprintf("%s (%s)", bucket.Name, conditiontext.Shorten(failure.Description, maxDetail)))
		}
	}
	slices.Sort(found)
	more := ""
	if len(found) > maxNamed {
		found, more = found[:maxNamed], fmt.Sprintf(" and %d more", len(found)-maxNamed)
	}
	return strings.Join(found, ", ") + more
}
