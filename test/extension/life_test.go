package extension

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// life runs an object of a kind through its life cycle.
type life struct {
	name string
	add  func(*world, manager.Manager, *calls)
	// lead creates an object in a Shoot, runs it through its life cycle, and returns an object at rest.
	lead func(w *world, calls *calls, shoot string) extensionsv1alpha1.Object
}

// of returns the life cycle of a kind. The finalizer is the part after extensions.gardener.cloud/.
func of[T extensionsv1alpha1.Object](file, finalizer, ofType string, newObject func() T) life {
	return life{
		name: file,
		add: func(w *world, mgr manager.Manager, calls *calls) {
			kit.Must(w, extension.AddToManager(mgr, actuator[T]{calls}, extension.Options{
				Type: ofType, RateLimiter: quickly(),
				Classes: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed},
			}))
		},
		lead: func(w *world, calls *calls, shoot string) extensionsv1alpha1.Object {
			object := newObject()
			w.read(file, shoot, object)
			if object.GetNamespace() != "" {
				object.SetNamespace(shoot) // replaces kube-system of a self-hosted Shoot
			}
			w.lead(calls, object, shoot, constants.PrefixExtensionFinalizer+finalizer)
			return object
		},
	}
}

func lives() []life {
	return []life{
		of("backupbucket", "backupbucket", "local", func() *extensionsv1alpha1.BackupBucket { return &extensionsv1alpha1.BackupBucket{} }),
		of("backupentry", "backupentry", "local", func() *extensionsv1alpha1.BackupEntry { return &extensionsv1alpha1.BackupEntry{} }),
		of("bastion", "bastion", "local", func() *extensionsv1alpha1.Bastion { return &extensionsv1alpha1.Bastion{} }),
		of("containerruntime", "containerruntime-sandbox", "sandbox", func() *extensionsv1alpha1.ContainerRuntime { return &extensionsv1alpha1.ContainerRuntime{} }),
		of("controlplane", "controlplane", "local", func() *extensionsv1alpha1.ControlPlane { return &extensionsv1alpha1.ControlPlane{} }),
		of("dnsrecord", "dnsrecord", "local", func() *extensionsv1alpha1.DNSRecord { return &extensionsv1alpha1.DNSRecord{} }),
		of("extension", "shoot-dns-service", "shoot-dns-service", func() *extensionsv1alpha1.Extension { return &extensionsv1alpha1.Extension{} }),
		of("infrastructure", "infrastructure", "local", func() *extensionsv1alpha1.Infrastructure { return &extensionsv1alpha1.Infrastructure{} }),
		of("network", "network", "local", func() *extensionsv1alpha1.Network { return &extensionsv1alpha1.Network{} }),
		of("operatingsystemconfig", "operatingsystemconfigs", "local", func() *extensionsv1alpha1.OperatingSystemConfig { return &extensionsv1alpha1.OperatingSystemConfig{} }),
		of("selfhostedshootexposure", "selfhostedshootexposure", "local", func() *extensionsv1alpha1.SelfHostedShootExposure {
			return &extensionsv1alpha1.SelfHostedShootExposure{}
		}),
		of("worker", "worker", "local", func() *extensionsv1alpha1.Worker { return &extensionsv1alpha1.Worker{} }),
	}
}

// TestLife runs an object of each kind through its life cycle: created, updated, failed, migrated, restored, deleted, and
// deleted by force. At the end, one object of each kind is at rest, and no requests are sent, even after a restart.
func TestLife(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}})
	made := &calls{}
	start := func() (*kit.Requests, manager.Manager, func()) {
		mgr, requests := w.manager()
		for _, each := range lives() {
			each.add(w, mgr, made)
		}
		return requests, mgr, kit.Run(t, mgr)
	}
	requests, mgr, stop := start()
	var resting []extensionsv1alpha1.Object
	for _, each := range lives() {
		t.Run(each.name, func(t *testing.T) {
			w := *w
			w.T = t
			shoot := "shoot--life--" + each.name
			w.shoot(shoot, nil)
			resting = append(resting, each.lead(&w, made, shoot))
		})
	}
	if len(resting) != len(lives()) {
		t.Fatalf("%d kinds are at rest, want %d", len(resting), len(lives()))
	}
	w.quiet(requests)
	w.atRest(mgr, requests, resting)
	stop()

	requests, mgr, _ = start()
	kit.EventuallyTrue(t, "the caches are filled", func() bool { return mgr.GetCache().WaitForCacheSync(t.Context()) })
	w.quiet(requests)
	for _, request := range requests.Single() {
		if request.Method != http.MethodGet {
			t.Errorf("after a restart: %s", request)
		}
	}
	w.atRest(mgr, requests, resting)
}

// atRest checks that changes that do not request an operation cause no requests once the caches contain them.
func (w *world) atRest(mgr manager.Manager, requests *kit.Requests, resting []extensionsv1alpha1.Object) {
	w.Helper()
	requests.Forget()
	text := fmt.Sprint(time.Now().UnixNano())
	for _, object := range resting {
		kit.Change(w, w.client, object, func() {
			configure(object, settings{Text: text})
			object.SetLabels(map[string]string{"seen": text})
		})
	}
	for _, object := range resting {
		kit.EventuallyTrue(w, "the cache shows the change", func() bool {
			seen, is := object.DeepCopyObject().(client.Object)
			if !is {
				return false
			}
			kit.Must(w, mgr.GetClient().Get(w.Context(), client.ObjectKeyFromObject(object), seen))
			return seen.GetLabels()["seen"] == text
		})
	}
	if sent := requests.Single(); len(sent) > 0 {
		w.Errorf("%d requests were sent at rest: %v", len(sent), sent)
	}
	w.Logf("%d objects at rest: %d requests", len(resting), len(requests.Single()))
}

func (w *world) lead(calls *calls, object extensionsv1alpha1.Object, shoot, finalizer string) {
	w.Helper()
	secret := w.credentials(object, shoot)
	example := object.DeepCopyObject()

	configure(object, settings{Text: "first"})
	flow.AskExtension(object, constants.OperationReconcile, time.Now())
	kit.Must(w, w.client.Create(w.Context(), object))
	w.eventually(object, "Create Succeeded")
	w.checkAnswer(object, "first", finalizer)
	w.checkSecret(secret, finalizer)

	w.ask(object, constants.OperationReconcile, settings{Text: "second"})
	w.eventually(object, "Reconcile Succeeded")
	w.checkAnswer(object, "second", finalizer)

	w.failsOnPurpose(object)
	w.ask(object, constants.OperationReconcile, settings{Text: "third"})
	w.eventually(object, "Reconcile Succeeded")
	w.checkAnswer(object, "third", finalizer)

	// Migrated: the object is deleted, the infrastructure that it represents is kept.
	w.ask(object, constants.OperationMigrate, settings{Text: "third"})
	w.eventually(object, "Migrate Succeeded")
	kit.EventuallyTrue(w, "the migrated object is released", func() bool {
		kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		return len(object.GetFinalizers()) == 0
	})
	w.checkSecret(secret)
	kit.Must(w, w.client.Delete(w.Context(), object))
	w.eventuallyGone(object)
	if made := calls.of(object); slices.Contains(made, "Delete") || !slices.Contains(made, "Migrate") {
		w.Errorf("the calls of the migration are %v", made)
	}

	object = w.restored(calls, example, finalizer)
	kit.Must(w, w.client.Delete(w.Context(), object))
	w.eventuallyGone(object)
	if made := calls.of(object); made[len(made)-1] != "Delete" {
		w.Errorf("the calls of the deletion are %v", made)
	}
	w.checkSecret(secret)

	w.deletedByForce(calls, example, shoot)
	w.atLast(example)
}

// credentials creates the Secret that an object refers to. It returns nil if the object refers to none.
func (w *world) credentials(object extensionsv1alpha1.Object, shoot string) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shoot, Name: "cloudprovider"}}
	switch object := object.(type) {
	case *extensionsv1alpha1.BackupBucket:
		object.Spec.SecretRef.Name = "bucket"
		secret.Namespace, secret.Name = constants.GardenNamespace, object.Spec.SecretRef.Name
	case *extensionsv1alpha1.BackupEntry:
		secret.Namespace, secret.Name = constants.GardenNamespace, object.Spec.SecretRef.Name
	case *extensionsv1alpha1.DNSRecord:
		secret.Name = object.Spec.SecretRef.Name
	case *extensionsv1alpha1.SelfHostedShootExposure:
		object.Spec.CredentialsRef.Namespace = shoot
	case *extensionsv1alpha1.Infrastructure, *extensionsv1alpha1.ControlPlane, *extensionsv1alpha1.Worker:
	default:
		return nil
	}
	w.create(secret)
	return secret
}

// checkSecret checks the finalizers of a Secret. The Secret may be nil.
func (w *world) checkSecret(secret *corev1.Secret, finalizers ...string) {
	w.Helper()
	if secret == nil {
		return
	}
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(secret), secret))
	if !slices.Equal(secret.Finalizers, finalizers) {
		w.Errorf("the finalizers of the Secret are %v, want %v", secret.Finalizers, finalizers)
	}
}

func (w *world) checkAnswer(object extensionsv1alpha1.Object, text, finalizer string) {
	w.Helper()
	status := object.GetExtensionStatus()
	switch {
	case !slices.Equal(object.GetFinalizers(), []string{finalizer}):
		w.Errorf("the finalizers are %v, want %s", object.GetFinalizers(), finalizer)
	case status.ProviderStatus == nil || !strings.Contains(string(status.ProviderStatus.Raw), `"text":"`+text+`"`):
		w.Errorf("the provider status is %s", status.ProviderStatus.Raw)
	case status.State == nil || !strings.Contains(string(status.State.Raw), "remember"):
		w.Errorf("the state is %+v", status.State)
	case status.LastError != nil || status.LastOperation.Progress != 100:
		w.Errorf("the status is %+v", status)
	}
}

// failsOnPurpose makes operations fail, once with a code that the actuator adds, and once with a code derived from the
// text.
func (w *world) failsOnPurpose(object extensionsv1alpha1.Object) {
	w.Helper()
	for _, test := range []struct {
		set  settings
		code corev1beta1.ErrorCode
	}{
		{settings{Fail: "the quota of disks is used up", Code: corev1beta1.ErrorInfraQuotaExceeded}, corev1beta1.ErrorInfraQuotaExceeded},
		{settings{Fail: "the infrastructure answers: out of capacity"}, corev1beta1.ErrorInfraResourcesDepleted},
	} {
		w.ask(object, constants.OperationReconcile, test.set)
		kit.Eventually(w, "the error is reported", func() string {
			kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(object), object))
			status := object.GetExtensionStatus()
			if status.LastError == nil || status.LastError.Description != "T"+test.set.Fail[1:] || !slices.Equal(status.LastError.Codes, []corev1beta1.ErrorCode{test.code}) ||
				status.LastOperation.State != corev1beta1.LastOperationStateError || status.ObservedGeneration != object.GetGeneration() {
				return fmt.Sprintf("%+v, %+v", status.LastOperation, status.LastError)
			}
			return ""
		})
	}
}

// restored creates an object with the state of another seed.
func (w *world) restored(calls *calls, example runtime.Object, finalizer string) extensionsv1alpha1.Object {
	w.Helper()
	object := copyOf(w, example)
	before := len(calls.of(object))
	configure(object, settings{Text: "restored"})
	flow.AskExtension(object, constants.OperationWaitForState, time.Now())
	kit.Must(w, w.client.Create(w.Context(), object))
	patch := client.MergeFrom(copyOf(w, object))
	object.GetExtensionStatus().State = &runtime.RawExtension{Raw: []byte(`{"remember":"from elsewhere"}`)}
	kit.Must(w, w.client.Status().Patch(w.Context(), object, patch))
	w.ask(object, constants.OperationRestore, settings{Text: "restored"})
	w.eventually(object, "Restore Succeeded")
	w.checkAnswer(object, "restored", finalizer)
	if made := calls.of(object)[before:]; !slices.Equal(made, []string{"Restore"}) {
		w.Errorf("the calls of the restoration are %v", made)
	}
	return object
}

func copyOf(w *world, object runtime.Object) extensionsv1alpha1.Object {
	w.Helper()
	copied, is := object.DeepCopyObject().(extensionsv1alpha1.Object)
	if !is {
		w.Fatalf("%T is not an extension object", object)
	}
	return copied
}

// deletedByForce deletes an object of a Shoot whose deletion a user forces. A bucket does not belong to a Shoot, so it is
// annotated itself.
func (w *world) deletedByForce(calls *calls, example runtime.Object, shoot string) {
	w.Helper()
	object := w.atLast(example)
	if _, bucket := object.(*extensionsv1alpha1.BackupBucket); bucket {
		kit.Change(w, w.client, object, func() {
			annotations := object.GetAnnotations()
			annotations[constants.AnnotationConfirmationForceDeletion] = "true"
			object.SetAnnotations(annotations)
		})
	}
	before := len(calls.of(object))
	w.changeShoot(shoot, func(shoot *corev1beta1.Shoot) {
		shoot.DeletionTimestamp = ptr.To(metav1.Now())
		shoot.Annotations = map[string]string{constants.AnnotationConfirmationForceDeletion: "true"}
	})
	kit.Eventually(w, "the controllers know that the deletion is forced", func() string {
		cluster := &extensionsv1alpha1.Cluster{}
		kit.Must(w, w.cached.Get(w.Context(), client.ObjectKey{Name: shoot}, cluster))
		decoded, err := extension.DecodeCluster(cluster)
		kit.Must(w, err)
		if !decoded.ForceDeletion() {
			return "the cached Cluster is not updated"
		}
		return ""
	})
	kit.Must(w, w.client.Delete(w.Context(), object))
	w.eventuallyGone(object)
	w.changeShoot(shoot, func(shoot *corev1beta1.Shoot) { shoot.DeletionTimestamp, shoot.Annotations = nil, nil })
	if made := calls.of(object)[before:]; !slices.Contains(made, "ForceDelete") {
		w.Errorf("the calls of the forced deletion are %v", made)
	}
}

// atLast creates an object again, and leaves it at rest.
func (w *world) atLast(example runtime.Object) extensionsv1alpha1.Object {
	w.Helper()
	object := copyOf(w, example)
	configure(object, settings{Text: "last"})
	flow.AskExtension(object, constants.OperationReconcile, time.Now())
	kit.Must(w, w.client.Create(w.Context(), object))
	w.eventually(object, "Create Succeeded")
	return object
}
