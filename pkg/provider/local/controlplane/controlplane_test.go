package controlplane

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "blue"}}
	object.Spec.Region = "local"
	plan, err := Plan(object, "agents:v1")
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckPlan(t, "controlplane", plan, nil)
	const head = `{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"ControlPlaneConfig",`
	object.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(head + `"storage":{"managedDefaultStorageClass":false}}`)}
	if plan, err = Plan(object, "agents:v1"); err != nil || plan.Bundles[2].Objects[0].GetAnnotations()[annotationDefaultClass] != "false" {
		t.Errorf("without a default StorageClass: %+v, %v", plan, err)
	}
	object.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(head + `"store":{}}`)}
	_, err = Plan(object, "agents:v1")
	if err == nil || !strings.Contains(err.Error(), "unknown field") || extension.Codes(err)[0] != gardencorev1beta1.ErrorConfigurationProblem {
		t.Errorf("for an unknown field: %v", err)
	}
}
