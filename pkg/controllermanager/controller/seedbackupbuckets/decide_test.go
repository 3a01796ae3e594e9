package seedbackupbuckets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestDecide checks the condition by the buckets, the condition before and the time.
func TestDecide(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const threshold = time.Minute
	good, bad := corev1beta1.BackupBucket{}, corev1beta1.BackupBucket{}
	good.Name, bad.Name = "good", "bad"
	bad.Status.LastError = &corev1beta1.LastError{Description: "no access"}
	type buckets = []corev1beta1.BackupBucket
	for name, test := range map[string]struct {
		buckets   buckets
		noBackup  bool
		before    corev1beta1.ConditionStatus
		since     time.Duration
		threshold time.Duration
		want      string
		next      time.Duration
	}{
		"available":                     {buckets: buckets{good}, want: "True BackupBucketsAvailable"},
		"available again":               {buckets: buckets{good}, before: "False", threshold: threshold, want: "True BackupBucketsAvailable"},
		"a new failure":                 {buckets: buckets{good, bad}, threshold: threshold, want: "False BackupBucketsError bad (no access)"},
		"a failure after a success":     {buckets: buckets{bad}, before: "True", threshold: threshold, want: "Progressing BackupBucketsError", next: threshold},
		"a failure without a threshold": {buckets: buckets{bad}, before: "True", want: "False BackupBucketsError"},
		"before the end":                {buckets: buckets{bad}, before: "Progressing", since: 20 * time.Second, threshold: threshold, want: "Progressing BackupBucketsError", next: 40 * time.Second},
		"at the end":                    {buckets: buckets{bad}, before: "Progressing", since: threshold, threshold: threshold, want: "False BackupBucketsError"},
		"still failing":                 {buckets: buckets{bad}, before: "False", since: time.Second, threshold: threshold, want: "False BackupBucketsError"},
		"no bucket yet":                 {want: "Unknown BackupBucketsGone"},
		"no bucket any more":            {before: "True", threshold: threshold, want: "Progressing BackupBucketsGone", next: threshold},
		"no bucket since long":          {before: "Progressing", since: threshold, threshold: threshold, want: "Unknown BackupBucketsGone"},
		"no backups":                    {noBackup: true, want: "nothing"},
		"no backups any more":           {noBackup: true, before: "True", want: "Unknown BackupBucketsGone"},
		"a bucket without backups":      {noBackup: true, buckets: buckets{bad}, want: "False BackupBucketsError"},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{}
			if !test.noBackup {
				seed.Spec.Backup = &corev1beta1.Backup{}
			}
			if test.before != "" {
				seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedBackupBucketsReady, Status: test.before, LastTransitionTime: metav1.NewTime(now.Add(-test.since))}}
			}
			condition, next := Decide(seed, test.buckets, test.threshold, now)
			got := "nothing"
			if condition != nil {
				got = fmt.Sprintf("%s %s %s", condition.Status, condition.Reason, strings.TrimPrefix(condition.Message, "The following BackupBuckets have issues: "))
			}
			if !strings.HasPrefix(got, test.want) || (test.next == 0) != next.IsZero() || test.next > 0 && next.Sub(now) != test.next {
				t.Errorf("got %q, next %s", got, next)
			}
		})
	}
}

// TestNamesFewBuckets checks that the message stays short.
func TestNamesFewBuckets(t *testing.T) {
	var buckets []corev1beta1.BackupBucket
	for i := range 30 {
		bucket := corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bucket-%02d", i)}}
		bucket.Status.LastError = &corev1beta1.LastError{Description: strings.Repeat("long ", 200)}
		buckets = append(buckets, bucket)
	}
	condition, _ := Decide(&corev1beta1.Seed{}, buckets, 0, time.Now())
	if !strings.HasSuffix(condition.Message, " and 20 more") || len(condition.Message) > 3000 {
		t.Errorf("the message has %d bytes: %s", len(condition.Message), condition.Message)
	}
}
