package secrets

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// keyNamed returns a Secret of KindEncryptionKey whose bytes are all the same letter.
func keyNamed(name string, provider corev1beta1.EncryptionProviderType) Secret {
	return Secret{Name: "secret-of-" + name, Data: Material{
		KeyEncryptionName: []byte(name), KeyEncryptionEncoding: []byte(encodingBase64), KeyEncryptionProvider: []byte(provider),
		KeyEncryptionSecret: []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(name[3:4], keyBytes)))),
	}}
}

const (
	aescbc, aesgcm, secretbox = corev1beta1.EncryptionProviderTypeAESCBC, corev1beta1.EncryptionProviderTypeAESGCM, corev1beta1.EncryptionProviderTypeSecretbox
	// ones and twos are the bytes of the keys in base64.
	ones, twos = "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=", "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI="
)

func TestEncryptionConfiguration(t *testing.T) {
	one, two := keyNamed("key1", aescbc), keyNamed("key2", aescbc)
	boxed := keyNamed("key2", secretbox)
	for name, test := range map[string]struct {
		item      Item
		decrypted []string
		want      string
	}{
		"before the first rotation": {item: Item{Current: one, Active: one}, want: `
- providers:
  - aescbc: {keys: [{name: key1, secret: ` + ones + `}]}
  - identity: {}
  resources: [configmaps, secrets]`},
		"all servers learn the new key": {item: Item{Current: two, Old: &one, Active: one}, want: `
- providers:
  - aescbc: {keys: [{name: key1, secret: ` + ones + `}, {name: key2, secret: ` + twos + `}]}
  - identity: {}
  resources: [configmaps, secrets]`},
		"they write with it": {item: Item{Current: two, Old: &one, Active: two}, want: `
- providers:
  - aescbc: {keys: [{name: key2, secret: ` + twos + `}, {name: key1, secret: ` + ones + `}]}
  - identity: {}
  resources: [configmaps, secrets]`},
		"another provider, and a resource less": {item: Item{Current: boxed, Old: &one, Active: boxed}, decrypted: []string{"secrets", "events"}, want: `
- providers:
  - secretbox: {keys: [{name: key2, secret: ` + twos + `}]}
  - aescbc: {keys: [{name: key1, secret: ` + ones + `}]}
  - identity: {}
  resources: [configmaps, secrets]
- providers:
  - identity: {}
  - secretbox: {keys: [{name: key2, secret: ` + twos + `}]}
  - aescbc: {keys: [{name: key1, secret: ` + ones + `}]}
  resources: [events]`},
	} {
		encryption := Encryption{
			Namespace: namespace, Name: "kube-apiserver-etcd-encryption-configuration", Resources: []string{"secrets", "configmaps", "secrets"}, Decrypted: test.decrypted,
		}
		secret, err := encryption.Secret(test.item)
		if err != nil {
			t.Fatal(err)
		}
		want := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:" + test.want
		if got := string(secret.Data[KeyEncryptionConfiguration]); canonical(t, got) != canonical(t, want) {
			t.Errorf("%s: %s", name, got)
		}
		if !*secret.Immutable || secret.Labels["role"] != encryption.Name || secret.Labels["resources.gardener.cloud/garbage-collectable-reference"] != "true" ||
			len(secret.Name) != len(encryption.Name)+9 {
			t.Errorf("%s: name %s, labels %v", name, secret.Name, secret.Labels)
		}
	}
}

func TestEncryptionConfigurationRefuses(t *testing.T) {
	one, same := keyNamed("key1", aescbc), keyNamed("key1", aescbc)
	same.Name = "another"
	strange, short := keyNamed("key1", "rot13"), keyNamed("key1", aesgcm)
	short.Data[KeyEncryptionSecret] = []byte("c2hvcnQ=")
	box := keyNamed("key1", secretbox)
	box.Data[KeyEncryptionSecret] = []byte(base64.StdEncoding.EncodeToString(make([]byte, 16)))
	for name, test := range map[string]struct {
		item Item
		want string
	}{
		"two keys of one name":       {Item{Current: one, Old: &same, Active: one}, "secret another: the key name key1 is used twice"},
		"an unknown provider":        {Item{Current: strange, Active: strange}, `key provider: "rot13"`},
		"a short key":                {Item{Current: short, Active: short}, "not an encryption key of 16, 24 or 32 bytes"},
		"a key for another provider": {Item{Current: box, Active: box}, "key secret has 16 bytes, and secretbox needs 32"},
	} {
		_, err := Encryption{Name: "a", Resources: []string{"secrets"}}.Secret(test.item)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := (Encryption{Name: "a"}).Secret(Item{Current: one, Active: one}); err == nil || !strings.Contains(err.Error(), "resources must not be empty") {
		t.Errorf("error %v", err)
	}
}

// TestEncryptionKeysOfOthers reads keys in the formats in which other programs store them.
func TestEncryptionKeysOfOthers(t *testing.T) {
	raw := strings.Repeat("1", keyBytes)
	for name, data := range map[string]Material{
		"bytes":          {KeyEncryptionSecret: []byte(raw), KeyEncryptionEncoding: []byte("none")},
		"bytes, unsaid":  {KeyEncryptionSecret: []byte(raw)},
		"base64, unsaid": {KeyEncryptionSecret: []byte(ones)},
		"base64":         {KeyEncryptionSecret: []byte(ones), KeyEncryptionEncoding: []byte(encodingBase64)},
	} {
		data[KeyEncryptionName] = []byte("key1")
		key, err := encryptionKey(Secret{Data: data})
		if err != nil || key.key.Secret != ones || key.provider != aescbc {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
