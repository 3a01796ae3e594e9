// Package tokeninvalidator is the webhook that makes the static tokens in Secrets invalid which the controller of the same name
// (pkg/tokeninvalidator) labelled, and makes Kubernetes regenerate them when the label is removed.
package tokeninvalidator

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// invalidToken replaces a token: three bytes whose base64 form is AAAA. While there is something,
// kube-controller-manager generates no token.
var invalidToken = []byte{0, 0, 0}

// Invalidate returns a Secret as it is to be, nil if it is so already: with an invalid token if it is labelled, and without one
// if it is not, so that kube-controller-manager generates a valid one. What has no data yet is left alone. The Secret that is
// passed is not changed; the one that is returned shares what is equal.
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
