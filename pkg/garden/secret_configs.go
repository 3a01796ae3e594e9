package garden

import (
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/discoveryserver"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/secrets"

	"k8s.io/utils/ptr"
)

const (
	// identity is the identity of the flow as a manager of Secrets.
	identity = "gardener-operator"
	// runtimeValidity is the validity of the authority of the runtime cluster's components. It is renewed before it expires, and the former one is
	// trusted for runtimeOldFor.
	runtimeValidity = 30 * 24 * time.Hour
	runtimeOldFor   = 24 * time.Hour
)

// authorities returns the certificate authorities of the virtual garden.
func authorities() []string {
	return []string{
		constants.SecretNameCACluster, constants.SecretNameCAClient, constants.SecretNameCAETCD, constants.SecretNameCAETCDPeer,
		constants.SecretNameCAFrontProxy, constants.SecretNameCAGardener,
	}
}

// secretConfigs returns the configs of all Secrets that the components need, including components that are held. Once etcd exists, authorities and
// keys are not generated again, because etcd may contain data that was encrypted with them.
func (in Inputs) secretConfigs() []secrets.Config {
	exists := in.emitted(bundleEtcdMain)
	configs := []secrets.Config{{
		Name: constants.SecretNameCAGardenRuntime, Kind: secrets.KindCA, CommonName: constants.SecretNameCAGardenRuntime, Validity: runtimeValidity,
		KeepOld: true, IgnoreOldAfter: runtimeOldFor, RenewAuthority: true,
	}}
	configs = append(configs, resourcemanager.Secrets(resourcemanager.Values{Namespace: in.Namespace}, constants.SecretNameCAGardenRuntime)...)
	if in.autoscaling() {
		configs = append(configs, vpa.Secrets(vpa.Values{Namespace: in.Namespace}, constants.SecretNameCAGardenRuntime)...)
	}
	for _, name := range authorities() {
		configs = append(configs, secrets.Config{
			Name: name, Kind: secrets.KindCA, KeepOld: true, RestoreOnly: exists, AlwaysChecksum: name == constants.SecretNameCAClient,
		})
	}
	configs = append(configs,
		secrets.Config{Name: constants.SecretNameServiceAccountKey, Kind: secrets.KindRSAKey, KeepOld: true, RestoreOnly: exists},
		secrets.Config{Name: constants.SecretNameWorkloadIdentitySigningKey, Kind: secrets.KindRSAKey, KeepOld: true, RestoreOnly: exists},
		secrets.Config{
			Name: constants.SecretNameETCDEncryptionKey, Kind: secrets.KindEncryptionKey, KeepOld: true, RestoreOnly: exists,
			Provider: providerOf(in.server().EncryptionConfig),
		},
		secrets.Config{
			Name: constants.SecretNameGardenerETCDEncryptionKey, Kind: secrets.KindEncryptionKey, KeepOld: true, RestoreOnly: exists,
			Provider: providerOf(in.gardener().EncryptionConfig),
		},
		secrets.Config{
			Name: constants.SecretNameGenericTokenKubeconfig, Kind: secrets.KindKubeconfig, Server: "https://" + in.insideHost(),
			TokenFile: constants.KubeconfigMountPath + "/token", Trusts: constants.SecretNameCACluster,
		},
		etcd.ClientSecret(),
	)
	for _, role := range []etcd.Role{etcd.RoleMain, etcd.RoleEvents} {
		configs = append(configs, etcd.Secrets(in.etcdValues(role))...)
	}
	configs = append(configs, kubeapiserver.Secrets(kubeapiserver.Values{
		Namespace: in.Namespace, NamePrefix: prefix, DNSNames: in.hosts(), ServiceNetworks: in.virtual().Networking.Services,
	})...)
	configs = append(configs, kubecontrollermanager.Secrets(kubecontrollermanager.Values{Namespace: in.Namespace, NamePrefix: prefix})...)
	if server := in.discovery(); server != nil && ptr.Deref(server.TLSSecretName, "") == "" {
		configs = append(configs, discoveryserver.Secrets(in.Namespace, in.discoveryHost(), constants.SecretNameCAGardener)...)
	}
	return append(configs, gardenerprograms.Secrets(in.Namespace, constants.SecretNameCAGardener)...)
}

// providerOf returns the declared encryption provider, or the default.
func providerOf(config *corev1beta1.EncryptionConfig) corev1beta1.EncryptionProviderType {
	if config == nil {
		return corev1beta1.EncryptionProviderTypeAESCBC
	}
	return ptr.Deref(config.Provider.Type, corev1beta1.EncryptionProviderTypeAESCBC)
}

// unknownSecrets names the Secrets that have not been generated yet, empty if all are.
func (in Inputs) unknownSecrets() string { return secrets.Missing(in.secretConfigs(), in.Secrets) }
