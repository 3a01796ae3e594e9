package resourcereferencemanager

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestEntryMovesWithItsShoot checks that the Seed of a BackupEntry changes only to that of its Shoot, and only if the entry is named after it.
func TestEntryMovesWithItsShoot(t *testing.T) {
	t.Parallel()
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one"}}
	shoot.Spec.SeedName, shoot.Status.TechnicalID = ptr.To("new"), "shoot--dev--one"
	objects := []runtime.Object{shoot, &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}}}
	for _, seed := range []string{"old", "new", "other"} {
		objects = append(objects, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed}})
	}
	garden := admissiontest.NewGarden(objects, time.Now())
	entryOf := func(name, owner, seed string, change func(*gardencorev1beta1.BackupEntry)) *gardencorev1beta1.BackupEntry {
		entry := &gardencorev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}}
		entry.OwnerReferences = []metav1.OwnerReference{{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: owner, Controller: ptr.To(true)}}
		entry.Spec = gardencorev1beta1.BackupEntrySpec{BucketName: "bucket", SeedName: &seed}
		if change != nil {
			change(entry)
		}
		return entry
	}
	const own = "shoot--dev--one--5a4f8c9e"
	deleted := func(entry *gardencorev1beta1.BackupEntry) {
		entry.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	free := func(entry *gardencorev1beta1.BackupEntry) { entry.OwnerReferences = nil }
	for name, test := range map[string]struct {
		entry, owner, from, to string
		change                 func(*gardencorev1beta1.BackupEntry)
		want                   string
	}{
		"with its Shoot":                  {own, "one", "old", "new", nil, ""},
		"the source of a copy":            {"source-" + own, "one", "old", "new", nil, ""},
		"without its Shoot":               {own, "one", "old", "other", nil, "moves only together with its Shoot"},
		"without its Shoot, when deleted": {own, "one", "old", "other", deleted, "moves only together with its Shoot"},
		"named after another Shoot":       {"shoot--dev--two--5a4f8c9e", "one", "old", "new", nil, "must begin with the technical ID"},
		"named after a longer one":        {"shoot--dev--one-more--5a4f8c9e", "one", "old", "new", nil, "must begin with the technical ID"},
		"of a deleted Shoot":              {own, "gone", "old", "other", nil, ""},
		"of nobody":                       {own, "one", "old", "other", free, ""},
		"not at all":                      {"any", "one", "other", "other", nil, ""},
		"to an unknown Seed":              {own, "gone", "old", "unknown", nil, "Seed unknown"},
	} {
		request := &admission.Request{
			Operation: apiadmission.Update, Resource: gardencorev1beta1.Resource("backupentries"),
			Object: entryOf(test.entry, test.owner, test.to, test.change), Old: entryOf(test.entry, test.owner, test.from, test.change),
		}
		err := admission.Validate(t.Context(), Plugin.Rules, request, garden)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}
