// Package tokeninvalidator implements the webhook that invalidates the static tokens in Secrets that the controller of
// the same name (pkg/tokeninvalidator) labelled. When the label is removed, it makes Kubernetes regenerate the tokens.
package tokeninvalidator

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// invalidToken replaces a token. It is three bytes with the Base64 form AAAA. kube-controller-manager generates a token
// only if the Secret has none.
var invalidToken = []byte{0, 0, 0}

// Invalidate returns the desired Secret, or nil if the Secret does not have to change. A labelled Secret gets an invalid
// token. A Secret that is not labelled loses an invalid token, so that kube-controller-manager generates a valid one. A
// Secret without data is not changed. Invalidate does not modify its argument. The returned Secret shares unchanged parts
// with it.
func Invalidate(secret *corev1.Secret) *corev1.Secret {
	if secret.Data == nil {
		return nil
	}
	token, found := secret.Data[corev1.ServiceAccountTokenKey]
	isInvalid := found && bytes.Equal(token, invalidToken)
	_, considered := secret.Labels[resourcesv1alpha1.LabelTokenInvalidatorConsider]
	if considered == isInvalid {
		return nil
	}
	changed := *secret
	changed.Data = make(map[string][]byte, len(secret.Data)+1)
	for key, value := range secret.Data {
		changed.Data[key] = value
	}
	if considered {
		changed.Data[corev1.ServiceAccountTokenKey] = bytes.Clone(invalidToken)
	} else {
		delete(changed.Data, corev1.ServiceAccountTokenKey)
	}
	return &changed
}
