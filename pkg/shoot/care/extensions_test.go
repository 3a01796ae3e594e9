package care

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func TestControlPlaneOf(t *testing.T) {
	for want, object := range map[string]client.Object{
		"shoot--dev--one": &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: "one"}},
		"shoot--dev--two": &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--two--5a4f8c9e"}},
	} {
		if got := controlPlaneOf(object); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestWhatIsKept: all kinds keep what contributions are made from, and nothing large.
func TestWhatIsKept(t *testing.T) {
	for _, kind := range extensionKinds {
		object := kind.newObject()
		object.SetNamespace("shoot--dev--one")
		object.SetName("one")
		object.SetAnnotations(map[string]string{"large": "text"})
		object.GetExtensionSpec().Type = "local"
		object.GetExtensionStatus().Conditions = []corev1beta1.Condition{{Type: corev1beta1.ShootEveryNodeReady, Status: "True"}}
		object.GetExtensionStatus().ObservedGeneration = 1
		reduced, err := reduceReports(object)
		kept, ok := reduced.(extensionsv1alpha1.Object)
		if err != nil || !ok {
			t.Fatalf("%s: %T, %v", kind.name, reduced, err)
		}
		if kept.GetNamespace() != "shoot--dev--one" || kept.GetName() != "one" || kept.GetExtensionSpec().Type != "local" || len(kept.GetAnnotations()) > 0 ||
			kept.GetExtensionStatus().ObservedGeneration != 0 || !equality.Semantic.DeepEqual(kept.GetExtensionStatus().Conditions, object.GetExtensionStatus().Conditions) {
			t.Errorf("%s: %+v", kind.name, kept)
		}
	}
}

// TestRevived: a renewal in time does not make care look at Shoots; one after a silence does.
func TestRevived(t *testing.T) {
	lease := func(renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(renewed))}}
	}
	for after, want := range map[time.Duration]bool{30 * time.Second: false, 5 * time.Minute: true} {
		if got := revived(5 * time.Minute).Update(event.UpdateEvent{ObjectOld: lease(now), ObjectNew: lease(now.Add(after))}); got != want {
			t.Errorf("after %s: %t", after, got)
		}
	}
	if revived(0).Update(event.UpdateEvent{ObjectOld: lease(now), ObjectNew: lease(now.Add(time.Hour))}) {
		t.Error("without a limit, a renewal is a reason to look at Shoots")
	}
}

func TestIsConverted(t *testing.T) {
	for name, test := range map[string]struct {
		strategy apiextensionsv1.ConversionStrategyType
		stored   []string
		want     bool
	}{
		"two versions, webhook": {apiextensionsv1.WebhookConverter, []string{"v1", "v2"}, true},
		"one version, webhook":  {apiextensionsv1.WebhookConverter, []string{"v1"}, false},
		"two versions, alike":   {apiextensionsv1.NoneConverter, []string{"v1", "v2"}, false},
	} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: test.strategy}
		definition.Status.StoredVersions = test.stored
		reduced, err := reduceDefinition(definition)
		kept, ok := reduced.(*apiextensionsv1.CustomResourceDefinition)
		if err != nil || !ok || isConverted(definition) != test.want || isConverted(kept) != test.want {
			t.Errorf("%s: %t, %+v, %v", name, isConverted(definition), reduced, err)
		}
	}
	if isConverted(&apiextensionsv1.CustomResourceDefinition{}) {
		t.Error("a definition without conversion is converted")
	}
}
