package resourcesize

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

// TestModes checks that an object that is too large is denied in the mode block, and admitted in the mode log.
func TestModes(t *testing.T) {
	for mode, denied := range map[string]bool{v1alpha1.ModeBlock: true, v1alpha1.ModeLog: false} {
		config := v1alpha1.ResourceAdmissionConfiguration{
			Limits: []v1alpha1.ResourceLimit{limit("", "v1", "configmaps", "100")}, OperationMode: ptr.To(mode),
		}
		message, code := admittest.Ask(t, New(nil, config), admittest.Write{
			Operation: admissionv1.Create, Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps",
			After: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Data: map[string]string{"a": strings.Repeat("x", 100)}},
		})
		if (code != 0) != denied || denied && !strings.Contains(message, "more than the 100 that are allowed") {
			t.Errorf("%s: got %d %q", mode, code, message)
		}
	}
}
