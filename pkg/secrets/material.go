package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Material is the data of a Secret. Its values are redacted when it is printed, logged or encoded as a whole.
type Material map[string][]byte

const redacted = "[redacted]"

// Format redacts the values for every verb of package fmt.
func (Material) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, redacted) }

// MarshalJSON redacts the values for loggers that write JSON.
func (Material) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalLog redacts the values for loggers behind logr.
func (Material) MarshalLog() any { return redacted }

// checksum returns a checksum of the content.
func (m Material) checksum() string {
	text, err := json.Marshal(map[string][]byte(m))
	if err != nil {
		return "" // a map of bytes can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Secret is an existing or new Secret.
type Secret struct {
	Name    string
	Labels  map[string]string
	Data    Material
	Created time.Time
	// UID of the Secret; nil if it does not exist yet.
	UID *types.UID
}

// fromObject returns the fields of a Secret that this package uses.
func fromObject(object *corev1.Secret) Secret {
	secret := Secret{Name: object.Name, Labels: object.Labels, Data: object.Data, Created: object.CreationTimestamp.Time}
	if object.UID != "" {
		secret.UID = &object.UID
	}
	return secret
}

// object returns the Secret to write.
func (s Secret) object(namespace string) *corev1.Secret {
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.Name, Labels: s.Labels},
		Type:       corev1.SecretTypeOpaque, Immutable: ptr.To(true), Data: s.Data,
	}
	if s.Data[corev1.TLSCertKey] != nil && s.Data[corev1.TLSPrivateKeyKey] != nil {
		object.Type = corev1.SecretTypeTLS
	}
	return object
}
