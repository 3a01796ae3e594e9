package backupbucket

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup/backuptest"
)

// TestFailedWriteDoesNotEndThePass checks that the Secret that an extension has generated reaches the garden, and the status reports the error,
// although the extension object cannot be written.
func TestFailedWriteDoesNotEndThePass(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "1", Finalizers: []string{constants.GardenerName}}}
	bucket.Spec.SeedName, bucket.Spec.Provider = ptr.To("here"), corev1beta1.BackupBucketProvider{Type: "local", Region: "r"}
	bucket.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}
	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"key": []byte("a")}}
	s := backuptest.New(t, now, bucket, given)
	r := &Reconciler{Seed: s.Seed, Live: s.Live}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: bucket.Name}}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}

	owner := flow.Owner{Flow: FlowName, UID: bucket.UID, Name: bucket.Name}
	asked, err := r.Asked(t.Context(), owner, keyOf("garden", bucket.Name))
	if err != nil {
		t.Fatal(err)
	}
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "made"}, Data: map[string][]byte{"token": []byte("b")}}
	extension := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: bucket.Name, Annotations: map[string]string{
		constants.AnnotationGardenerTimestamp: asked.At.UTC().Format(time.RFC3339Nano),
	}}}
	extension.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(now)}
	extension.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: generated.Namespace, Name: generated.Name}
	for _, object := range []client.Object{generated, extension} {
		if err := s.Live.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	bundle := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: keyOf("garden", bucket.Name).Name}}
	if err := s.Live.Delete(t.Context(), bundle); err != nil { // so there is something to write
		t.Fatal(err)
	}
	s.Fails = true
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, backuptest.ErrWrite) {
		t.Fatalf("the error is %v", err)
	}
	published := &corev1.Secret{}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: constants.PrefixGeneratedBackupBucketSecret + bucket.Name}
	if err := r.Garden.Get(t.Context(), key, published); err != nil || string(published.Data["token"]) != "b" {
		t.Errorf("the generated Secret is %v in the garden: %v", published.Data, err)
	}
	if err := r.Garden.Get(t.Context(), client.ObjectKeyFromObject(bucket), bucket); err != nil {
		t.Fatal(err)
	}
	status := bucket.Status
	if status.LastError == nil || !strings.Contains(status.LastError.Description, backuptest.ErrWrite.Error()) ||
		status.LastOperation.State != corev1beta1.LastOperationStateError || status.GeneratedSecretRef == nil {
		t.Errorf("the status is %+v", status)
	}
}
