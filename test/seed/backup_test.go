package seed

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// backups leads a bucket, and an entry in it, through their lives. The entry moves to another Seed.
func (w *world) backups(seed string) {
	w.Helper()
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "bucket-credentials"}, Data: map[string][]byte{"user": []byte("given")}}
	kit.Must(w, w.garden.Create(w.Context(), credentials))
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}, Spec: corev1beta1.BackupBucketSpec{
		Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: ptr.To(seed),
		CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: credentials.Namespace, Name: credentials.Name},
	}}
	kit.Must(w, w.garden.Create(w.Context(), bucket))
	w.eventuallyOperated(bucket, func() *corev1beta1.LastOperation { return bucket.Status.LastOperation }, "Reconcile Succeeded")
	w.data(w.seed, "bucket-bucket", "given")
	w.data(w.garden, "generated-bucket-bucket", "generated")
	if bucket.Status.GeneratedSecretRef == nil || bucket.Status.ProviderStatus == nil || bucket.Status.ObservedGeneration != bucket.Generation {
		w.Errorf("the status of the bucket is %+v", bucket.Status)
	}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(credentials), credentials))
	if fmt.Sprint(credentials.Finalizers) != "["+constants.FinalizerBackupBucket+"]" {
		w.Errorf("the finalizers of the credentials are %v", credentials.Finalizers)
	}
	kit.Change(w, w.garden, credentials, func() { credentials.Data["user"] = []byte("changed") })
	kit.EventuallyTrue(w, "the credentials are renewed in the seed", func() bool { return w.read(w.seed, "bucket-bucket") == "changed" })

	shoot := metav1.OwnerReference{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Shoot", Name: "moved", UID: "1", Controller: ptr.To(true)}
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: "shoot--a--b--1", OwnerReferences: []metav1.OwnerReference{shoot},
	}, Spec: corev1beta1.BackupEntrySpec{
		BucketName: bucket.Name, SeedName: ptr.To(seed),
	}}
	kit.Must(w, w.garden.Create(w.Context(), entry))
	operation := func() *corev1beta1.LastOperation { return entry.Status.LastOperation }
	w.eventuallyOperated(entry, operation, "Reconcile Succeeded")
	w.data(w.seed, "entry-"+entry.Name, "generated")
	kit.Change(w, w.garden, entry, func() { entry.Spec.SeedName = ptr.To("elsewhere") })
	w.eventuallyOperated(entry, operation, "Migrate Succeeded")
	if entry.Status.SeedName != nil {
		w.Errorf("the entry belongs to Seed %s", *entry.Status.SeedName)
	}
	live := &extensionsv1alpha1.BackupEntry{}
	if err := w.seed.Get(w.Context(), client.ObjectKey{Name: entry.Name}, live); !apierrors.IsNotFound(err) {
		w.Errorf("the extension object of a moved entry: %v", err)
	}
	saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{
		Namespace: entry.Namespace, Name: shoot.Name, Annotations: map[string]string{constants.AnnotationConfirmationDeletion: "true"},
	}}
	saved.Spec.Extensions = []corev1beta1.ExtensionResourceState{{Kind: "BackupEntry", Name: ptr.To(entry.Name), State: &runtime.RawExtension{Raw: []byte(`{"saved":"elsewhere"}`)}}}
	kit.Must(w, w.garden.Create(w.Context(), saved))
	kit.Change(w, w.garden, entry, func() {
		entry.Spec.SeedName, entry.Annotations = ptr.To(seed), map[string]string{constants.AnnotationGardenerOperation: constants.OperationRestore}
	})
	w.eventuallyOperated(entry, operation, "Reconcile Succeeded") // the restoration, followed by a reconciliation
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Name: entry.Name}, live))
	if live.Status.State == nil || string(live.Status.State.Raw) != `{"saved":"elsewhere"}` {
		w.Errorf("the status of the extension object is %+v, without the saved state", live.Status)
	}
	kit.Must(w, w.garden.Delete(w.Context(), saved))
	kit.Must(w, w.garden.Delete(w.Context(), entry))
	w.eventuallyGone(entry)
	kit.Must(w, w.garden.Delete(w.Context(), bucket))
	w.eventuallyGone(bucket)
	w.eventuallyGone(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "generated-bucket-bucket"}})
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(credentials), credentials))
	if len(credentials.Finalizers) > 0 {
		w.Errorf("the finalizers of the credentials are %v", credentials.Finalizers)
	}
	kit.Must(w, w.seed.Delete(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "made-bucket"}}))
}

func (w *world) eventuallyOperated(object client.Object, last func() *corev1beta1.LastOperation, want string) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("%s reports %s", object.GetName(), want), func() string {
		kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		operation := last()
		if operation == nil || string(operation.Type)+" "+string(operation.State) != want || object.GetAnnotations()[constants.AnnotationGardenerOperation] != "" {
			return fmt.Sprintf("%+v\n%s", operation, w.bundles())
		}
		return ""
	})
}

func (w *world) eventuallyGone(object client.Object) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, object.GetName()+" is deleted", func() string {
		err := w.garden.Get(w.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v %+v\n%s", err, object, w.bundles())
	})
}

// data checks the user in a Secret.
func (w *world) data(c client.Client, name, want string) {
	w.Helper()
	if got := w.read(c, name); got != want {
		w.Errorf("the user in Secret %s is %q, want %q", name, got, want)
	}
}

func (w *world) read(c client.Client, name string) string {
	w.Helper()
	secret := &corev1.Secret{}
	kit.Must(w, c.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, secret))
	return string(secret.Data["user"])
}
