// Package credentials creates Secrets in a seed for credentials in the garden: copies of Secrets, and Secrets into which
// gardenlet writes tokens of WorkloadIdentities.
package credentials

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// purposeTokens is the value of the label security.gardener.cloud/purpose on Secrets with tokens of WorkloadIdentities.
const purposeTokens = "workload-identity-token-requestor"

// keyConfig is the key with the configuration of the target system.
const keyConfig = "config"

// AnnotationDigest on an extension object is the [Digest] of its credentials. A change triggers the extension.
const AnnotationDigest = "checksum/credentials"

// Copy returns a Secret with the data of another one.
func Copy(key client.ObjectKey, of *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: corev1.SecretTypeOpaque, Data: maps.Clone(of.Data),
	}
}

// Digest returns a digest of the data of credentials, and of the UIDs of WorkloadIdentities. It changes if an extension must use other credentials.
func Digest(data map[string][]byte, of ...types.UID) string {
	var parts [][]byte
	for _, uid := range of {
		parts = append(parts, []byte(uid))
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		parts = append(parts, []byte(key), data[key])
	}
	return object.Digest(parts...)
}

// ForWorkloadIdentity returns a Secret for tokens of a WorkloadIdentity. context is the object of the garden, as JSON,
// for which they are used. A controller of gardenlet writes the tokens.
func ForWorkloadIdentity(key client.ObjectKey, of *securityv1alpha1.WorkloadIdentity, context json.RawMessage) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{
				constants.LabelSecurityPurpose: purposeTokens, constants.LabelWorkloadIdentityProvider: of.Spec.TargetSystem.Type,
			},
			Annotations: map[string]string{
				constants.AnnotationWorkloadIdentityNamespace: of.Namespace, constants.AnnotationWorkloadIdentityName: of.Name,
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if context != nil {
		secret.Annotations[constants.AnnotationWorkloadIdentityContextObject] = string(context)
	}
	if config := of.Spec.TargetSystem.ProviderConfig; config != nil {
		text, err := json.Marshal(config)
		if err != nil {
			return nil, fmt.Errorf("encode targetSystem.providerConfig of WorkloadIdentity %s/%s: %w", of.Namespace, of.Name, err)
		}
		secret.Data = map[string][]byte{keyConfig: text}
	}
	return secret, nil
}
