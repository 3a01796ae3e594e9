package rotation

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// KeyCompletesItself reports whether the rotation of the encryption key completes without an operation of the user, in a cluster with a version of
// Kubernetes. Only the control plane uses the key.
func KeyCompletesItself(of *corev1beta1.ETCDEncryptionKeyRotation, kubernetes string) bool {
	return ptr.Deref(of.AutoCompleteAfterPrepared, false) || KeyCompletesAlways(kubernetes)
}

// KeyCompletesAlways reports whether a version of Kubernetes no longer has an operation to complete the rotation of the encryption key.
func KeyCompletesAlways(kubernetes string) bool {
	parsed, err := version.ParseGeneric(kubernetes)
	return err == nil && parsed.AtLeast(version.MustParseGeneric("1.34"))
}
