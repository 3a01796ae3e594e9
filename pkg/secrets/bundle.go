package secrets

import (
	"fmt"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Keys of the data of Secrets.
const (
	KeyCACert       = constants.KeyCACert
	KeyCAKey        = constants.KeyCAKey
	KeyBundleCert   = "bundle.crt"
	KeyBundleKey    = "bundle.key"
	KeyRSA          = "id_rsa"
	KeyUsername     = "username"
	KeyPassword     = "password"
	KeyStaticTokens = "static_tokens.csv" //nolint:gosec // the name of a key
	// KeyEncryptionName, KeyEncryptionSecret and KeyEncryptionEncoding are those of KindEncryptionKey.
	KeyEncryptionName     = "key"
	KeyEncryptionSecret   = "secret"
	KeyEncryptionEncoding = "encoding"
)

// bundleOf returns what current and old Secret have to be trusted by. Its name changes with its content.
func bundleOf(item Item, identity string) (Secret, error) {
	from, to := KeyCACert, KeyBundleCert
	if item.Config.Kind == KindRSAKey {
		from, to = KeyRSA, KeyBundleKey
	}
	content := item.Current.Data[from]
	if len(content) == 0 {
		return Secret{}, fmt.Errorf("secret %s has no key %s", item.Current.Name, from)
	}
	if item.Old != nil {
		content = append(append([]byte{}, content...), item.Old.Data[from]...)
	}
	data := Material{to: content}
	name := item.Config.Name + "-bundle"
	return Secret{Name: name + "-" + data.checksum()[:8], Data: data, Labels: map[string]string{
		constants.LabelSecretsManagerName:      name,
		constants.LabelSecretsManagerManagedBy: managedBy,
		constants.LabelSecretsManagerIdentity:  identity,
		constants.LabelSecretsManagerBundleFor: item.Config.Name,
	}}, nil
}

// Trusted returns the name of the Secret that others trust this by: its bundle, or itself if there is none.
func (i Item) Trusted() string {
	if i.Bundle != nil {
		return i.Bundle.Name
	}
	return i.Current.Name
}
