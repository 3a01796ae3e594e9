package backupentry

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup/backuptest"
)

// TestFailedWriteDoesNotEndThePass checks that the deletion of an entry goes on although its bundle cannot be deleted, and that the status
// reports all errors.
func TestFailedWriteDoesNotEndThePass(t *testing.T) {
	entry := given().entry
	entry.UID, entry.Finalizers = "1", []string{constants.GardenerName}
	bucket := given().bucket
	bucket.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}
	bucket.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	bucket.Status.ObservedGeneration, bucket.Spec.SeedName = bucket.Generation, ptr.To("here")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"key": []byte("a")}}
	s := backuptest.New(t, time.Now().Add(time.Hour), entry, bucket, secret) // the simulated garden sets the time of the deletion
	r := &Reconciler{Seed: s.Seed, Live: s.Live, Config: &gardenletv1alpha1.BackupEntryController{}}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(entry)}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.Garden.Delete(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	s.Fails = true
	_, err := r.Reconcile(t.Context(), request)
	if err := r.Garden.Get(t.Context(), request.NamespacedName, entry); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{backuptest.ErrWrite, backuptest.ErrList} {
		if !errors.Is(err, want) || entry.Status.LastError == nil || !strings.Contains(entry.Status.LastError.Description, want.Error()) {
			t.Errorf("%q is not in the error %v, or not in the status %+v", want, err, entry.Status.LastError)
		}
	}
	if entry.Status.LastOperation.Type != corev1beta1.LastOperationTypeDelete || entry.Status.LastOperation.State != corev1beta1.LastOperationStateError {
		t.Errorf("the last operation is %+v", entry.Status.LastOperation)
	}
}
