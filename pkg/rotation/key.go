package rotation

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
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

// CompletesByItself returns the value of autoCompleteAfterPrepared of a rotation of the encryption key that starts. Users complete it on older
// versions of Kubernetes, unless they requested it in one step.
func CompletesByItself(operation, kubernetes string) *bool {
	if operation == constants.OperationRotateETCDEncryptionKey || KeyCompletesAlways(kubernetes) {
		return ptr.To(true)
	}
	return nil
}

// ProviderChanges reports whether another encryption provider is declared than the active one, which requires a new key. Either may be nil.
func ProviderChanges(active *corev1beta1.EncryptionAtRest, declared *corev1beta1.EncryptionConfig) bool {
	if active == nil || declared == nil {
		return false
	}
	is, wanted := active.Provider.Type, ptr.Deref(declared.Provider.Type, "")
	return is != "" && wanted != "" && is != wanted
}
