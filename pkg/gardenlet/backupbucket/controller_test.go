package backupbucket

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
)

// TestSharedCredentials checks that credentials are shared with buckets of other Seeds, which the cache does not contain.
func TestSharedCredentials(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bucket := func(name, secret string) *corev1beta1.BackupBucket {
		object := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		object.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: secret}
		return object
	}
	own := bucket("own", "backup")
	for other, want := range map[string]bool{"backup": true, "another": false} {
		r := &Reconciler{Seed: &backup.Seed{
			Garden:       fake.NewClientBuilder().WithScheme(scheme).WithObjects(own).Build(),
			GardenReader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(own, bucket("of-another-seed", other)).Build(),
		}}
		if shared, err := r.sharesCredentials(t.Context(), own); err != nil || shared != want {
			t.Errorf("a bucket of another Seed with the Secret %s: shared %t, %v", other, shared, err)
		}
	}
}
