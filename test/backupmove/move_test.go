package backupmove

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	project   = "garden-dev"
	entryName = "shoot--dev--moved--1"
)

// TestBackupsMove leads the BackupEntry of a Shoot from Seed a to Seed b, and back. The requests of the flow of the Shoot are sent with the rights of
// the gardenlets. On the way to b, the first writes of each object fail.
func TestBackupsMove(t *testing.T) {
	f := newFixture(t)
	f.bucket("a")
	f.bucket("b")
	entry := f.createShoot()
	f.onlyIn("a", "bucket-a", entryName)
	f.secret("a", "entry-"+entryName, "of a")

	for _, s := range f.seeds {
		s.failing.Store(true)
	}
	f.moves(entry, "a", "b")
	for _, s := range f.seeds {
		s.failing.Store(false)
		s.mu.Lock()
		if s.failed < 5 {
			t.Errorf("only %d writes of the gardenlet of Seed %s have failed", s.failed, s.name)
		}
		t.Logf("failed writes in Seed %s: %d of %v", s.name, s.failed, s.attempts)
		s.mu.Unlock()
	}
	f.moves(entry, "b", "a")
}

// createShoot creates a Shoot on Seed a, its saved state, and its BackupEntry, as the gardenlet of a.
func (f *fixture) createShoot() *corev1beta1.BackupEntry {
	f.Helper()
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "moved"}}
	shoot.Spec = corev1beta1.ShootSpec{
		CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local", SeedName: ptr.To("a"),
		Provider: corev1beta1.Provider{Type: "local"}, Kubernetes: corev1beta1.Kubernetes{Version: "1.37.1"},
	}
	kit.Must(f, f.garden.Create(f.Context(), shoot))
	saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: shoot.Name}}
	saved.Spec.Extensions = []corev1beta1.ExtensionResourceState{
		{Kind: "BackupEntry", Name: ptr.To(entryName), State: &runtime.RawExtension{Raw: []byte(`{"saved":"elsewhere"}`)}},
	}
	kit.Must(f, f.garden.Create(f.Context(), saved))
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: project, Name: entryName,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
		},
		Spec: corev1beta1.BackupEntrySpec{BucketName: "bucket-a", SeedName: ptr.To("a")},
	}
	f.as("a", "create the entry", func(as client.Client) error { return as.Create(f.Context(), entry) })
	f.reports(entry, "Reconcile Succeeded", "a")
	return entry
}

// moves leads the entry from one Seed to another.
func (f *fixture) moves(entry *corev1beta1.BackupEntry, from, to string) {
	f.Helper()
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "moved"}}
	status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"seedName":%q,"technicalID":"shoot--dev--moved"}}`, from))
	kit.Must(f, f.garden.Status().Patch(f.Context(), shoot, status))
	shoot.Spec.SeedName = &to
	kit.Must(f, f.garden.SubResource("binding").Update(f.Context(), shoot)) // nothing else changes it
	// The source hands the entry over, and gives it up.
	f.as(from, "hand the entry over", func(as client.Client) error {
		return f.change(as, entry, func() { entry.Spec.SeedName = &to })
	})
	f.reports(entry, "Migrate Succeeded", "")
	f.gone(from, entryName)
	// The destination gets access to the previous bucket, takes the entry into its own one, and restores it.
	source := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: constants.PrefixSourceBackupEntry + entryName, OwnerReferences: entry.OwnerReferences}, Spec: entry.Spec,
	}
	f.as(to, "copy the backups", func(as client.Client) error {
		copied := source.DeepCopy()
		return client.IgnoreAlreadyExists(as.Create(f.Context(), copied))
	})
	f.reports(source, "Reconcile Succeeded", to)
	f.secret(to, "entry-"+source.Name, "of "+from)
	f.onlyIn(to, "bucket-"+from, source.Name)
	f.as(to, "take the entry", func(as client.Client) error {
		return f.change(as, entry, func() {
			entry.Spec.BucketName = "bucket-" + to
			metav1.SetMetaDataAnnotation(&entry.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationRestore)
		})
	})
	f.reports(entry, "Reconcile Succeeded", to) // after the restoration
	f.secret(to, "entry-"+entryName, "of "+to)
	f.onlyIn(to, "bucket-"+to, entryName)
	f.restored(to)
	f.as(to, "end the copy", func(as client.Client) error {
		kit.Must(f, f.garden.Get(f.Context(), client.ObjectKeyFromObject(source), source))
		return as.Delete(f.Context(), source)
	})
	kit.EventuallyWithin(f, 2*kit.WaitTimeout, "the entry for the copy is deleted", func() string {
		err := f.garden.Get(f.Context(), client.ObjectKeyFromObject(source), source)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v %+v", err, source)
	})
	f.gone(to, source.Name)
}

// as sends a request as the gardenlet of a Seed, as soon as it has the right. The test makes writes fail, so a request may be repeated.
func (f *fixture) as(seed, what string, send func(client.Client) error) {
	f.Helper()
	kit.Eventually(f, "the gardenlet of Seed "+seed+" can "+what, func() string { return kit.TextOf(client.IgnoreNotFound(send(f.seeds[seed].gardenlet))) })
}

// change changes an entry with the rights of a client.
func (f *fixture) change(as client.Client, entry *corev1beta1.BackupEntry, change func()) error {
	if err := as.Get(f.Context(), client.ObjectKeyFromObject(entry), entry); err != nil {
		return err
	}
	before := client.MergeFromWithOptions(entry.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	return as.Patch(f.Context(), entry, before)
}

// reports waits until an entry reports an operation, and which Seed has it.
func (f *fixture) reports(entry *corev1beta1.BackupEntry, operation, seed string) {
	f.Helper()
	f.eventually(entry, func() string {
		return operationOf(entry.Status.LastOperation) + " " + ptr.Deref(entry.Status.SeedName, "") + entry.Annotations[constants.AnnotationGardenerOperation]
	}, operation+" "+seed, func() *corev1beta1.LastError { return entry.Status.LastError })
	labelled := []string{ptr.Deref(entry.Spec.SeedName, "")}
	for key := range maps.Keys(entry.Labels) {
		if !slices.Contains(labelled, key[len(constants.LabelPrefixSeedName):]) {
			f.Errorf("the labels of %s are %v", entry.Name, entry.Labels)
		}
	}
}

// onlyIn checks that an extension object exists in a Seed, for a bucket, and not in the other one.
func (f *fixture) onlyIn(seed, bucket, name string) {
	f.Helper()
	for at, s := range f.seeds {
		live := &extensionsv1alpha1.BackupEntry{}
		err := s.Get(f.Context(), client.ObjectKey{Name: name}, live)
		if at == seed && (err != nil || live.Spec.BucketName != bucket) || at != seed && !apierrors.IsNotFound(err) {
			f.Errorf("the extension object %s in Seed %s: %v, %+v", name, at, err, live.Spec)
		}
	}
}

// restored checks that the extension object in a Seed has the state that was saved before.
func (f *fixture) restored(seed string) {
	f.Helper()
	live := &extensionsv1alpha1.BackupEntry{}
	kit.Must(f, f.seeds[seed].Get(f.Context(), client.ObjectKey{Name: entryName}, live))
	if live.Status.State == nil || string(live.Status.State.Raw) != `{"saved":"elsewhere"}` {
		f.Errorf("the status in Seed %s is %+v, without the saved state", seed, live.Status)
	}
}

// gone waits until a Seed has neither the extension object nor the Secret of an entry.
func (f *fixture) gone(seed, name string) {
	f.Helper()
	for _, object := range []client.Object{
		&extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "entry-" + name}},
	} {
		if err := f.seeds[seed].Get(f.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			f.Errorf("Seed %s still has %T %s: %v", seed, object, name, err)
		}
	}
}

// secret checks the user in the Secret of an entry in a Seed.
func (f *fixture) secret(seed, name, want string) {
	f.Helper()
	secret := &corev1.Secret{}
	kit.Must(f, f.seeds[seed].Get(f.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, secret))
	if got := string(secret.Data["user"]); got != want {
		f.Errorf("the user in Secret %s of Seed %s is %q, want %q", name, seed, got, want)
	}
}
