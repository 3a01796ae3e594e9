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
	KeyRSAPublic    = "id_rsa.pub"
	KeyUsername     = "username"
	KeyPassword     = "password"
	KeyAuth         = "auth"
	KeyStaticTokens = "static_tokens.csv" //nolint:gosec // the name of a key
	KeyVPNTLSAuth   = "vpn.tlsauth"
	KeyKubeconfig   = "kubeconfig"
	// KeyEncryptionName and the following keys belong to KindEncryptionKey.
	KeyEncryptionName     = "key"
	KeyEncryptionSecret   = "secret"
	KeyEncryptionEncoding = "encoding"
	KeyEncryptionProvider = "provider"
)

// bundleOf returns the Secret with the bundle of the current and the old Secret. Its name depends on its content.
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
	name, checksum := item.Config.Name+"-bundle", decimal([]byte(data.checksum()))
	return Secret{Name: name + "-" + hexDigits(8, checksum), Data: data, Labels: map[string]string{
		constants.LabelSecretsManagerName:             name,
		constants.LabelSecretsManagerManagedBy:        managedBy,
		constants.LabelSecretsManagerIdentity:         identity,
		constants.LabelSecretsManagerChecksumOfConfig: checksum,
		constants.LabelSecretsManagerBundleFor:        item.Config.Name,
	}}, nil
}

// Trusted returns the name of the Secret with which clients verify this one: its bundle, or the Secret itself if it has
// no bundle.
func (i Item) Trusted() string {
	if i.Bundle != nil {
		return i.Bundle.Name
	}
	return i.Current.Name
}
