package shoot

import (
	"slices"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/metricsserver"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// authorities returns the certificate authorities of a Shoot.
func (in Inputs) authorities() []string {
	all := []string{
		constants.SecretNameCACluster, constants.SecretNameCAClient, constants.SecretNameCAETCD,
		constants.SecretNameCAETCDPeer, constants.SecretNameCAFrontProxy,
	}
	if in.hasWorkers() {
		all = append(all, constants.SecretNameCAKubelet, constants.SecretNameCAMetricsServer, constants.SecretNameCAVPN)
	}
	return all
}

// secretConfigs returns the configs of all Secrets that the control plane needs. Once etcd exists, authorities and keys
// are restored but not generated again, because etcd may contain data that was encrypted with them. So are those of a control plane
// that arrives from another Seed.
func (in Inputs) secretConfigs() []secrets.Config {
	exists := in.emitted(bundleEtcdMain) || in.Phase == phaseRestore
	var configs []secrets.Config
	for _, name := range in.authorities() {
		configs = append(configs, secrets.Config{
			Name: name, Kind: secrets.KindCA, KeepOld: true, Persist: true,
			// Nothing in etcd depends on these authorities, which control planes of earlier versions do not have.
			RestoreOnly:    exists && name != constants.SecretNameCAMetricsServer && name != constants.SecretNameCAVPN,
			AlwaysChecksum: name == constants.SecretNameCAClient,
		})
	}
	configs = append(configs,
		secrets.Config{Name: constants.SecretNameServiceAccountKey, Kind: secrets.KindRSAKey, KeepOld: true, Persist: true, RestoreOnly: exists},
		secrets.Config{
			Name: constants.SecretNameETCDEncryptionKey, Kind: secrets.KindEncryptionKey, KeepOld: true, Persist: true, RestoreOnly: exists,
			Provider: in.encryptionProvider(),
		},
		secrets.Config{
			Name: constants.SecretNameGenericTokenKubeconfig, Kind: secrets.KindKubeconfig, Server: "https://" + kubeapiserver.Name,
			TokenFile: constants.KubeconfigMountPath + "/token", Trusts: constants.SecretNameCACluster,
		},
		etcd.ClientSecret(),
	)
	for _, role := range []etcd.Role{etcd.RoleMain, etcd.RoleEvents} {
		configs = append(configs, etcd.Secrets(etcd.Values{Namespace: in.Namespace, Role: role, HighlyAvailable: in.highlyAvailable()})...)
	}
	configs = append(configs, kubeapiserver.Secrets(kubeapiserver.Values{
		Namespace: in.Namespace, DNSNames: in.hosts(), ServiceNetworks: in.serviceNetworks(),
	})...)
	configs = append(configs, kubecontrollermanager.Secrets(kubecontrollermanager.Values{Namespace: in.Namespace})...)
	if in.hasWorkers() {
		configs = append(configs, kubescheduler.Secrets(kubescheduler.Values{Namespace: in.Namespace})...)
		configs = slices.Concat(configs, kubeapiserver.NodeSecrets(), resourcemanager.ShootSecrets(in.Namespace), metricsserver.Secrets(),
			vpnseedserver.Secrets(in.Namespace))
		configs = append(configs, secrets.Config{Name: constants.SecretNameSSHKeyPair, Kind: secrets.KindSSHKeypair, KeepOld: true, Persist: true})
	}
	if in.scales() {
		configs = append(configs, vpa.Secrets(vpa.Values{Namespace: in.Namespace}, constants.SecretNameCACluster)...)
	}
	return configs
}

// scales reports whether the cluster has the Vertical Pod Autoscaler.
func (in Inputs) scales() bool { return in.withoutScaling() == "" }

// secret returns the name of the Secret of a config. trusted returns the name of the Secret that its clients trust.
func (in Inputs) secret(config string) string  { return in.Secrets[config].Current.Name }
func (in Inputs) trusted(config string) string { return in.Secrets[config].Trusted() }

// trustedWithWorkers is trusted for a config that only a Shoot with workers has. It is empty without.
func (in Inputs) trustedWithWorkers(config string) string {
	if !in.hasWorkers() {
		return ""
	}
	return in.trusted(config)
}

// unknownNamespace reports that the namespace of the control plane does not exist.
func (in Inputs) unknownNamespace() string {
	if in.NamespaceExists {
		return ""
	}
	return "the namespace " + in.Namespace + " does not exist in the seed yet"
}

// unknownSecrets names the Secrets that have not been generated.
func (in Inputs) unknownSecrets() string {
	if why := in.unknownNamespace(); why != "" {
		return why
	}
	missing := secrets.Missing(in.secretConfigs(), in.Secrets)
	if missing != "" && in.SecretsUnusable != "" {
		return "secrets of the control plane cannot be used: " + in.SecretsUnusable
	}
	return missing
}

// secretsManager returns the manager of the generated Secrets of a control plane.
func (r *reconciler) secretsManager(in Inputs) *secrets.Manager {
	return &secrets.Manager{
		Reader: r.caches.material, Uncached: r.uncached, Writer: r.seed, Namespace: in.Namespace, Identity: identity, Clock: r.options.Clock,
	}
}

// wantedSecrets returns the Secrets that the secrets manager generates and rotates.
func (in Inputs) wantedSecrets() secrets.Wanted {
	return secrets.Wanted{Configs: in.secretConfigs(), Rotations: in.rotations()}
}
