package namespacedcloudprofile

import (
	"k8s.io/apimachinery/pkg/api/equality"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// Decide returns the status that a profile with this parent should have, and whether it differs. Webhooks of extensions may change
// providerConfig of the status: then it differs, but writing it changes nothing.
func Decide(profile *corev1beta1.NamespacedCloudProfile, parent *corev1beta1.CloudProfile) (corev1beta1.NamespacedCloudProfileStatus, bool) {
	wanted := corev1beta1.NamespacedCloudProfileStatus{
		CloudProfileSpec: cloudprofile.Merge(&parent.Spec, &profile.Spec), ObservedGeneration: profile.Generation,
	}
	return wanted, !equality.Semantic.DeepEqual(profile.Status, wanted)
}
