package extensionobjects

import (
	"errors"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func TestControlPlaneOf(t *testing.T) {
	for want, object := range map[string]client.Object{
		"shoot--dev--one": &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: "one"}},
		"shoot--dev--two": &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--two--5a4f8c9e"}},
		"shoot--dev--six": &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "source-shoot--dev--six--5a4f8c9e"}},
	} {
		if got := ControlPlaneOf(object); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestReduce checks that all kinds keep the fields that conditions and states depend on, and nothing else.
func TestReduce(t *testing.T) {
	for _, kind := range kinds {
		object := kind.New()
		object.SetNamespace("shoot--dev--one")
		object.SetName("one")
		object.SetAnnotations(map[string]string{"large": "text"})
		object.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Unix(1, 0))))
		object.GetExtensionSpec().Type = "local"
		status := object.GetExtensionStatus()
		status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ShootEveryNodeReady, Status: "True"}}
		status.State, status.Resources = &runtime.RawExtension{Raw: []byte("{}")}, []corev1beta1.NamedResourceReference{{Name: "a"}}
		status.ObservedGeneration = 1
		if config, is := object.(*extensionsv1alpha1.OperatingSystemConfig); is {
			config.Spec.Purpose = extensionsv1alpha1.OperatingSystemConfigPurposeProvision
		}
		if worker, is := object.(*extensionsv1alpha1.Worker); is {
			worker.Status.InPlaceUpdates = &extensionsv1alpha1.WorkerInPlaceUpdatesStatus{WorkerPoolToHashMap: map[string]string{"a": "1"}}
		}
		reduced, err := Reduce(object)
		kept, ok := reduced.(extensionsv1alpha1.Object)
		if err != nil || !ok {
			t.Fatalf("%s: %T, %v", kind.Name, reduced, err)
		}
		want := object
		want.SetAnnotations(nil)
		status.ObservedGeneration = 0
		if !equality.Semantic.DeepEqual(kept, want) {
			t.Errorf("%s: %+v, want %+v", kind.Name, kept, want)
		}
	}
}

// TestNotSynced checks that objects that have not been read yet are not taken for absent.
func TestNotSynced(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	informer := func(synced bool) toolscache.SharedIndexInformer {
		if synced {
			return controllertest.NewFakeInformer(controllertest.Synced)
		}
		return controllertest.NewFakeInformer()
	}
	definitions := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	workers := extensionsv1alpha1.SchemeGroupVersion.WithKind("Worker")
	kind := named(kindWorker)
	for name, test := range map[string]struct{ definitions, workers, known bool }{
		"nothing is read":          {},
		"only definitions are":     {definitions: true},
		"definitions are not read": {workers: true},
		"all are read":             {definitions: true, workers: true, known: true},
	} {
		// This cache finds every definition, and no Worker.
		objects := &Objects{Cache: &informertest.FakeInformers{Scheme: scheme, InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
			definitions: informer(test.definitions), workers: informer(test.workers),
		}}}
		found, err := objects.List(t.Context(), kind, &corev1beta1.Shoot{})
		if known := err == nil; known != test.known || !known && !errors.Is(err, ErrNotSynced) || len(found) > 0 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
