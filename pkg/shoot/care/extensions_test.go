package care

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestRevived checks that a renewal in time does not trigger care for Shoots, and that a renewal after an interruption does.
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
		t.Error("without a limit, a renewal triggers care for Shoots")
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
		t.Error("a definition without conversion counts as converted")
	}
}
