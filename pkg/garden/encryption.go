package garden

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorvalidation "github.com/trellis-k8s/trellis/pkg/apis/operator/validation"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// The resources that are always encrypted in etcd, because they contain credentials. The status does not contain them.
var (
	kubernetesKinds = []string{"secrets"}
	gardenerKinds   = []string{
		"controllerdeployments.core.gardener.cloud", "controllerregistrations.core.gardener.cloud", "internalsecrets.core.gardener.cloud",
		"shootstates.core.gardener.cloud",
	}
)

// encryptedKinds returns the resources that the API server encrypts in etcd, sorted: Secrets, and those in the configuration.
func (in Inputs) encryptedKinds() []string {
	return rotation.Canonical(slices.Concat(kubernetesKinds, resourcesOf(in.server().EncryptionConfig)))
}

// encryptedGardenerKinds returns the resources that the garden's API server encrypts in etcd, sorted.
func (in Inputs) encryptedGardenerKinds() []string {
	return rotation.Canonical(slices.Concat(gardenerKinds, resourcesOf(in.gardener().EncryptionConfig)))
}

func resourcesOf(config *corev1beta1.EncryptionConfig) []string {
	if config == nil {
		return nil
	}
	return config.Resources
}

// encryption returns what the API server of Kubernetes encrypts, and gardenerEncryption what that of the garden encrypts.
func (in Inputs) encryption() rotation.Encryption {
	return in.encryptionOf(constants.SecretNameETCDEncryptionKey, in.encryptedKinds(), kubernetesKinds, false)
}

func (in Inputs) gardenerEncryption() rotation.Encryption {
	return in.encryptionOf(constants.SecretNameGardenerETCDEncryptionKey, in.encryptedGardenerKinds(), gardenerKinds, true)
}

// encryptionOf returns what an API server encrypts. The status reports the resources of both API servers together.
func (in Inputs) encryptionOf(key string, wanted, always []string, ofGarden bool) rotation.Encryption {
	encryption := rotation.Encryption{Wanted: wanted, Before: always, Done: in.done, Rotated: in.rotating().Prepares(rotation.EncryptionKey)}
	if reported := in.reportedEncryption(); reported != nil {
		encryption.Reported = true
		encryption.Before = rotation.Canonical(slices.Concat(always, slices.DeleteFunc(slices.Clone(reported.Resources), func(resource string) bool {
			return operatorvalidation.IsGardenerResource(resource) != ofGarden
		})))
	}
	if in.unknownSecrets() == "" {
		encryption.Key = in.Secrets[key].Current.Name
	}
	return encryption
}

func (in Inputs) reportedEncryption() *corev1beta1.EncryptionAtRest {
	if in.Garden.Status.Credentials == nil {
		return nil
	}
	return in.Garden.Status.Credentials.EncryptionAtRest
}

// encryptionSecret returns the Secret with the encryption configuration of the API server of Kubernetes, and gardenerEncryptionSecret that of the
// garden's API server.
func (in Inputs) encryptionSecret() (*corev1.Secret, error) {
	encryption := in.encryption()
	return secrets.Encryption{
		Namespace: in.Namespace, Name: constants.PrefixSecretETCDEncryptionConfiguration,
		Resources: encryption.Encrypting(), Decrypted: encryption.Decrypting(),
	}.Secret(in.Secrets[constants.SecretNameETCDEncryptionKey])
}

func (in Inputs) gardenerEncryptionSecret() (*corev1.Secret, error) {
	encryption := in.gardenerEncryption()
	return secrets.Encryption{
		Namespace: in.Namespace, Name: "gardener-apiserver-etcd-encryption-configuration",
		Resources: encryption.Encrypting(), Decrypted: encryption.Decrypting(),
	}.Secret(in.Secrets[constants.SecretNameGardenerETCDEncryptionKey])
}

// encryptionAtRest returns what is encrypted in addition to what always is, for the status. All objects have been rewritten by then.
func (in Inputs) encryptionAtRest() *corev1beta1.EncryptionAtRest {
	provider := in.Secrets[constants.SecretNameETCDEncryptionKey].Active.Data[secrets.KeyEncryptionProvider]
	return &corev1beta1.EncryptionAtRest{
		Resources: rotation.Canonical(slices.Concat(resourcesOf(in.server().EncryptionConfig), resourcesOf(in.gardener().EncryptionConfig))),
		Provider: corev1beta1.EncryptionProviderStatus{
			Type: cmp.Or(corev1beta1.EncryptionProviderType(provider), providerOf(in.server().EncryptionConfig)),
		},
	}
}
