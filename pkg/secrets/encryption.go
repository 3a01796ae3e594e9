package secrets

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/references"
)

const (
	// KeyEncryptionConfiguration is the data key of a Secret with an EncryptionConfiguration.
	KeyEncryptionConfiguration = "encryption-configuration.yaml"
	labelRole                  = "role"
)

// Encryption configures how an API server encrypts data in etcd.
type Encryption struct {
	// Namespace and Name of the Secret, without the checksum suffix: kube-apiserver-etcd-encryption-configuration.
	Namespace, Name string
	// Resources to encrypt, such as secrets and configmaps.
	Resources []string
	// Decrypted are resources that are no longer encrypted, until all their objects have been rewritten.
	Decrypted []string
}

// providedKey is a key and the provider that uses it.
type providedKey struct {
	provider corev1beta1.EncryptionProviderType
	key      apiserverv1.Key
}

// Secret returns the EncryptionConfiguration for a key in an immutable Secret with the label of the garbage collector.
// The active key of the item is used for writes, the others only for reads. All API servers must know a new key before
// one of them writes with it.
func (e Encryption) Secret(item Item) (*corev1.Secret, error) {
	if len(e.Resources) == 0 {
		return nil, fmt.Errorf("encryption configuration %s: resources must not be empty", e.Name)
	}
	secrets := []Secret{item.Active}
	for _, secret := range []*Secret{&item.Current, item.Old} {
		if secret != nil && secret.Name != item.Active.Name {
			secrets = append(secrets, *secret)
		}
	}
	var keys []providedKey
	for _, secret := range secrets {
		key, err := encryptionKey(secret)
		if err != nil {
			return nil, fmt.Errorf("encryption configuration %s: secret %s: %w", e.Name, secret.Name, err)
		}
		same := func(other providedKey) bool { return other.provider == key.provider && other.key.Name == key.key.Name }
		if slices.ContainsFunc(keys, same) {
			return nil, fmt.Errorf("encryption configuration %s: secret %s: the key name %s is used twice",
				e.Name, secret.Name, key.key.Name)
		}
		keys = append(keys, key)
	}
	identity := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	configuration := apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{Resources: sorted(e.Resources), Providers: append(blocks(keys), identity)}},
	}
	decrypted := slices.DeleteFunc(sorted(e.Decrypted), func(resource string) bool { return slices.Contains(e.Resources, resource) })
	if len(decrypted) > 0 {
		configuration.Resources = append(configuration.Resources, apiserverv1.ResourceConfiguration{
			Resources: decrypted, Providers: append([]apiserverv1.ProviderConfiguration{identity}, blocks(keys)...),
		})
	}
	text, err := yaml.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", e.Name, err)
	}
	object := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, Labels: map[string]string{labelRole: e.Name}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{KeyEncryptionConfiguration: text},
	}
	if err := references.MakeUnique(object); err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", e.Name, err)
	}
	return object, nil
}

func sorted(resources []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(resources)))
}

// blocks returns the provider configurations of keys. Keys of the same provider share one. The first key of the first
// provider is used for writes.
func blocks(keys []providedKey) []apiserverv1.ProviderConfiguration {
	var providers []corev1beta1.EncryptionProviderType
	byProvider := map[corev1beta1.EncryptionProviderType][]apiserverv1.Key{}
	for _, key := range keys {
		if byProvider[key.provider] == nil {
			providers = append(providers, key.provider)
		}
		byProvider[key.provider] = append(byProvider[key.provider], key.key)
	}
	var result []apiserverv1.ProviderConfiguration
	for _, provider := range providers {
		block := apiserverv1.ProviderConfiguration{}
		switch keys := byProvider[provider]; provider {
		case corev1beta1.EncryptionProviderTypeAESGCM:
			block.AESGCM = &apiserverv1.AESConfiguration{Keys: keys}
		case corev1beta1.EncryptionProviderTypeSecretbox:
			block.Secretbox = &apiserverv1.SecretboxConfiguration{Keys: keys}
		default:
			block.AESCBC = &apiserverv1.AESConfiguration{Keys: keys}
		}
		result = append(result, block)
	}
	return result
}

// encryptionKey parses a Secret of KindEncryptionKey. Other programs store the key either raw or encoded without
// setting KeyEncryptionEncoding.
func encryptionKey(secret Secret) (providedKey, error) {
	if err := required(secret.Data, KeyEncryptionName, KeyEncryptionSecret); err != nil {
		return providedKey{}, err
	}
	text := secret.Data[KeyEncryptionSecret]
	encoded := string(text)
	if string(secret.Data[KeyEncryptionEncoding]) != encodingBase64 && isKey(text) {
		encoded = base64.StdEncoding.EncodeToString(text)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !isKey(key) {
		return providedKey{}, fmt.Errorf("key %s is not an encryption key of 16, 24 or 32 bytes", KeyEncryptionSecret)
	}
	provider := cmp.Or(corev1beta1.EncryptionProviderType(secret.Data[KeyEncryptionProvider]), corev1beta1.EncryptionProviderTypeAESCBC)
	if !slices.Contains(providers, provider) {
		return providedKey{}, fmt.Errorf("key %s: %q is not one of %v", KeyEncryptionProvider, provider, providers)
	}
	if provider == corev1beta1.EncryptionProviderTypeSecretbox && len(key) != keyBytes {
		return providedKey{}, fmt.Errorf("key %s has %d bytes, and %s needs %d", KeyEncryptionSecret, len(key), provider, keyBytes)
	}
	return providedKey{provider, apiserverv1.Key{Name: string(secret.Data[KeyEncryptionName]), Secret: encoded}}, nil
}

func isKey(key []byte) bool { return slices.Contains([]int{16, 24, 32}, len(key)) }
