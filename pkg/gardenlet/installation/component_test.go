package installation

import (
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// TestExtensionsOfTheSeed checks that only the extensions that the Seed itself needs are marked as its components, so that
// an extension that only Shoots need does not decide on the health of the Seed.
func TestExtensionsOfTheSeed(t *testing.T) {
	for name, test := range map[string]struct {
		resource corev1beta1.ControllerResource
		marked   bool
	}{
		"of its provider":                      {corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "local"}, true},
		"of another provider":                  {corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "other"}, false},
		"of its provider, not the primary one": {corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "local", Primary: ptr.To(false)}, false},
		"of its specification":                 {corev1beta1.ControllerResource{Kind: "Extension", Type: "filter"}, true},
		"of Shoots":                            {corev1beta1.ControllerResource{Kind: "Extension", Type: "certificates"}, false},
		"for all Shoots":                       {corev1beta1.ControllerResource{Kind: "Extension", Type: "x", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}}, false},
		"for all seeds":                        {corev1beta1.ControllerResource{Kind: "Extension", Type: "x", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeSeed}}, true},
	} {
		in := inputs(t, nil)
		in.Seed.Spec.Extensions = []corev1beta1.Extension{{Type: "filter"}}
		in.Registration.Spec.Resources = []corev1beta1.ControllerResource{test.resource}
		bundle, err := in.Bundle(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if got := bundle.Labels[constants.LabelGardenRole] == constants.RoleSeedSystemComponent; got != test.marked {
			t.Errorf("an extension %s is marked as a component of the Seed: %t", name, got)
		}
	}
}
