package extensionvalidator

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func bucketOf(name, ofType string) *gardencorev1beta1.BackupBucket {
	bucket := &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
	bucket.Spec.Provider.Type = ofType
	return bucket
}

func entryIn(bucket string) *gardencorev1beta1.BackupEntry {
	entry := &gardencorev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "entry"}}
	entry.Spec.BucketName = bucket
	return entry
}

// TestBackups checks that BackupBuckets, and BackupEntries by their bucket, have a type that is registered as primary for their kind.
func TestBackups(t *testing.T) {
	t.Parallel()
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "backups"}}
	secondary := false
	registration.Spec.Resources = []gardencorev1beta1.ControllerResource{
		{Kind: "BackupBucket", Type: "both"}, {Kind: "BackupEntry", Type: "both"}, {Kind: "BackupBucket", Type: "buckets"},
		{Kind: "BackupBucket", Type: "secondary", Primary: &secondary},
	}
	leaving := entryIn("missing")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	garden := admissiontest.NewGarden([]runtime.Object{registration, bucketOf("both", "both"), bucketOf("buckets", "buckets")}, time.Now())
	for name, test := range map[string]struct {
		resource    string
		object, old runtime.Object
		want        string
	}{
		"a bucket":                         {"backupbuckets", bucketOf("a", "both"), nil, ""},
		"a bucket of an unknown type":      {"backupbuckets", bucketOf("a", "unknown"), nil, "unknown"},
		"a bucket of a secondary type":     {"backupbuckets", bucketOf("a", "secondary"), nil, "secondary"},
		"a stored bucket of unknown type":  {"backupbuckets", bucketOf("a", "unknown"), bucketOf("a", "unknown"), ""},
		"an entry":                         {"backupentries", entryIn("both"), nil, ""},
		"an entry without an extension":    {"backupentries", entryIn("buckets"), nil, "buckets"},
		"an entry in a missing bucket":     {"backupentries", entryIn("missing"), nil, `the BackupBucket "missing" does not exist`},
		"an entry that moves to a bucket":  {"backupentries", entryIn("buckets"), entryIn("both"), "buckets"},
		"a stored entry without extension": {"backupentries", entryIn("buckets"), entryIn("buckets"), ""},
		"an entry that is being deleted":   {"backupentries", leaving, nil, ""},
	} {
		request := &admission.Request{Operation: apiadmission.Create, Resource: gardencorev1beta1.Resource(test.resource), Object: test.object}
		if test.old != nil {
			request.Operation, request.Old = apiadmission.Update, test.old
		}
		err := admission.Validate(t.Context(), Plugin.Rules, request, garden)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}
