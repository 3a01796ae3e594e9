package namespacedcloudprofile

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	parent, profile := &corev1beta1.CloudProfile{}, &corev1beta1.NamespacedCloudProfile{}
	parent.Spec.Type, profile.Generation = "local", 1
	profile.Spec.Limits = &corev1beta1.Limits{MaxNodesTotal: ptr.To[int32](5)}
	for _, step := range []struct {
		name    string
		change  func()
		differs bool
	}{
		{"a new profile", func() {}, true},
		{"nothing", func() {}, false},
		{"a change of the profile", func() { profile.Spec.Limits.MaxNodesTotal, profile.Generation = ptr.To[int32](6), 2 }, true},
		{"a change of the parent", func() { parent.Spec.Regions = []corev1beta1.Region{{Name: "here"}} }, true},
		{"a generation without another specification", func() { profile.Generation = 3 }, true},
		{"another provider configuration of the parent", func() { parent.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{}`)} }, true},
		{"labels", func() { profile.Labels = map[string]string{"a": "b"} }, false},
	} {
		step.change()
		status, differs := Decide(profile, parent)
		if differs != step.differs {
			t.Errorf("%s: the status differs: %v", step.name, differs)
		}
		if status.ObservedGeneration != profile.Generation || *status.CloudProfileSpec.Limits.MaxNodesTotal != *profile.Spec.Limits.MaxNodesTotal ||
			status.CloudProfileSpec.Type != "local" || len(status.CloudProfileSpec.Regions) != len(parent.Spec.Regions) {
			t.Errorf("%s: the status is %+v", step.name, status)
		}
		profile.Status = status
	}
}
