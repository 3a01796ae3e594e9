package shoot

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-k8s/trellis/pkg/component/clusteridentity"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
	"github.com/trellis-k8s/trellis/pkg/component/shootsystem"
	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Limits of the API server's autoscaler (Gardener).
const (
	serversMin          = 2
	serversMinAvailable = 3
	serversMinNeverDown = 4
	serversMax          = 6
)

// accessSecret returns the name of the Secret with the token of a component's account in the shoot.
func accessSecret(account string) string { return constants.PrefixShootAccess + account }

func (in Inputs) namespaceValues() shootnamespace.Values {
	return shootnamespace.Values{
		Name: in.Namespace, Shoot: in.Shoot, Seed: in.Seed, CloudProfile: in.CloudProfile, Zones: in.zones(), Extensions: in.extensions(),
		Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
	}
}

func (in Inputs) namespace() ([]client.Object, error) {
	values := in.namespaceValues()
	cluster, err := shootnamespace.Cluster(values)
	if err != nil {
		return nil, err
	}
	objects := append([]client.Object{shootnamespace.Namespace(values)}, shootnamespace.Access(in.Namespace, in.hasWorkers(), in.Phase == phaseRestore)...)
	return append(objects, cluster), nil
}

// etcd returns the function for the objects of an etcd cluster.
func (in Inputs) etcd(role etcd.Role) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		values := etcd.Values{
			Namespace: in.Namespace, Role: role, Replicas: 1, HighlyAvailable: in.highlyAvailable(),
			Storage:               etcd.Storage(role, in.Seed.Spec.Volume),
			VerticalPodAutoscaler: in.autoscaling(), Defragmentation: in.defragmentation(), Backup: in.backup(role),
			CA: in.trusted(constants.SecretNameCAETCD), Server: in.secret(etcd.SecretServer(role)), Client: in.secret(etcd.SecretClient),
		}
		if in.highlyAvailable() {
			values.Replicas, values.PeerCA, values.Peer = 3, in.trusted(constants.SecretNameCAETCDPeer), in.secret(etcd.SecretPeer(role))
		}
		if in.hibernated() {
			values.Replicas = 0
		}
		if given := in.Shoot.Spec.Kubernetes.ETCD; given != nil {
			of := map[etcd.Role]*corev1beta1.ETCDConfig{etcd.RoleMain: given.Main, etcd.RoleEvents: given.Events}[role]
			if of != nil {
				values.Autoscaling = of.Autoscaling
			}
		}
		return etcd.Objects(values)
	}
}

// defragmentation returns the schedule of the defragmentation of etcd: once a day at a time in the maintenance window that
// depends on the UID of the Shoot, so that not all etcd clusters are defragmented at the same time.
func (in Inputs) defragmentation() string {
	window, _ := maintenance.OfShoot(in.Shoot)
	return window.From(in.Owner.UID).Schedule()
}

// scale returns the limits of the API server's autoscaler.
func (in Inputs) scale() kubeapiserver.Scaling {
	scaling := kubeapiserver.Scaling{Min: in.replicas(serversMin), Max: serversMax}
	if in.highlyAvailable() {
		scaling.Min = in.replicas(serversMinAvailable)
	}
	if in.Shoot.Annotations[constants.AnnotationControlPlaneScaleDownDisabled] == "true" {
		scaling.Min, scaling.NeverDown = in.replicas(serversMinNeverDown), true
	}
	return scaling
}

func (in Inputs) apiServer() ([]client.Object, error) {
	image, err := in.image(kubeapiserver.Image)
	if err != nil {
		return nil, err
	}
	given, err := in.userFiles()
	if err != nil {
		return nil, err
	}
	encryption, err := secrets.Encryption{
		Namespace: in.Namespace, Name: constants.PrefixSecretETCDEncryptionConfiguration, Resources: in.encryption().Encrypting(), Decrypted: in.encryption().Decrypting(),
	}.Secret(in.Secrets[constants.SecretNameETCDEncryptionKey])
	if err != nil {
		return nil, err
	}
	token, err := in.Secrets[kubeapiserver.SecretStaticTokens].Token(kubeapiserver.HealthCheckUser)
	if err != nil {
		return nil, err
	}
	advertised, err := in.advertisedIP()
	if err != nil {
		return nil, err
	}
	exposed, err := in.exposed()
	if err != nil {
		return nil, err
	}
	return kubeapiserver.Objects(kubeapiserver.Values{
		Exposed: exposed.Gateway != nil, AdvertiseAddress: advertised,
		Namespace: in.Namespace, Image: image, Config: in.server(), Replicas: in.scale().Min,
		Scaling: in.scale(), VerticalPodAutoscaler: in.autoscaling(),
		ExternalHostname: in.outsideHost(), ManagedIssuer: in.managedIssuer(),
		ServiceNetworks: in.serviceNetworks(), Encryption: encryption, HealthCheckToken: token, Given: given,
		Mounted: kubeapiserver.Mounted{
			CA: in.trusted(constants.SecretNameCACluster), ClientCA: in.trusted(constants.SecretNameCAClient),
			FrontProxyCA: in.trusted(constants.SecretNameCAFrontProxy),
			EtcdCA:       in.trusted(constants.SecretNameCAETCD), EtcdClient: in.secret(etcd.SecretClient),
			Server:     in.secret(kubeapiserver.SecretServer),
			Aggregator: in.secret(kubeapiserver.SecretAggregator), StaticTokens: in.secret(kubeapiserver.SecretStaticTokens),
			ServiceAccountKey:  in.Secrets[constants.SecretNameServiceAccountKey].Active.Name,
			ServiceAccountKeys: in.trusted(constants.SecretNameServiceAccountKey),
			KubeletCA:          in.trustedWithWorkers(constants.SecretNameCAKubelet), KubeletClient: in.secret(kubeapiserver.SecretKubeletClient),
			VPNCA: in.trustedWithWorkers(constants.SecretNameCAVPN), VPNClient: in.secret(vpnseedserver.SecretClient),
		},
	})
}

func (in Inputs) apiServerAutoscaler() ([]client.Object, error) {
	return kubeapiserver.Autoscaler(in.Namespace, in.scale())
}

func (in Inputs) resourceManager() ([]client.Object, error) {
	image, err := in.image(resourcemanager.Image)
	if err != nil {
		return nil, err
	}
	return resourcemanager.ShootObjects(resourcemanager.ShootValues{
		Namespace: in.Namespace, Image: image, Replicas: in.replicas(2), ClusterID: ptr.Deref(
			in.Seed.Status.ClusterIdentity, string(in.Seed.UID),
		),
		LogLevel: in.Config.LogLevel, LogFormat: in.Config.LogFormat,
		Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig), VerticalPodAutoscaler: in.autoscaling(), Nodes: in.managedNodes(),
	})
}

func (in Inputs) accessSecrets() ([]client.Object, error) {
	objects, err := shootsystem.AccessSecrets(shootsystem.AccessValues{
		Namespace: in.Namespace, Inside: "https://" + in.insideHost(), Outside: "https://" + in.outsideHost(),
	})
	objects = append(objects, kubecontrollermanager.AccessSecret(in.Namespace))
	if in.withoutMachines() == "" {
		objects = append(objects, machinecontrollermanager.AccessSecret(in.Namespace), clusterautoscaler.AccessSecret(in.Namespace))
	}
	if in.hasWorkers() {
		objects = append(objects, kubescheduler.AccessSecret(in.Namespace))
	}
	if in.scales() {
		objects = append(objects, vpa.AccessSecrets(in.Namespace)...)
	}
	return objects, err
}

func (in Inputs) controllerManager() ([]client.Object, error) {
	image, err := in.image(kubecontrollermanager.Image)
	if err != nil {
		return nil, err
	}
	return kubecontrollermanager.Objects(kubecontrollermanager.Values{
		Namespace: in.Namespace, Image: image, Config: ptr.Deref(
			in.Shoot.Spec.Kubernetes.KubeControllerManager, corev1beta1.KubeControllerManagerConfig{},
		),
		RuntimeConfig: kubeapiserver.RuntimeConfig(in.server(), in.hasWorkers()), Replicas: in.replicas(1),
		VerticalPodAutoscaler: in.autoscaling(), ServiceNetworks: in.serviceNetworks(), PodNetworks: in.podNetworks(),
		Mounted: kubecontrollermanager.Mounted{
			CA: in.trusted(constants.SecretNameCACluster), ClientCA: in.Secrets[constants.SecretNameCAClient].Active.Name,
			KubeletCA:         in.Secrets[constants.SecretNameCAKubelet].Active.Name,
			ServiceAccountKey: in.Secrets[constants.SecretNameServiceAccountKey].Active.Name,
			Server:            in.secret(kubecontrollermanager.SecretServer), Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
		},
	})
}

func (in Inputs) scheduler() ([]client.Object, error) {
	image, err := in.image(kubescheduler.Image)
	if err != nil {
		return nil, err
	}
	return kubescheduler.Objects(kubescheduler.Values{
		Namespace: in.Namespace, Image: image, Config: ptr.Deref(in.Shoot.Spec.Kubernetes.KubeScheduler, corev1beta1.KubeSchedulerConfig{}),
		Replicas: in.replicas(1), VerticalPodAutoscaler: in.autoscaling(),
		Mounted: kubescheduler.Mounted{
			ClientCA: in.trusted(constants.SecretNameCAClient), Server: in.secret(kubescheduler.SecretServer),
			Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
		},
	})
}

func (in Inputs) schedulerRBAC() ([]client.Object, error) { return kubescheduler.ShootObjects(), nil }

func (in Inputs) resourceManagerRBAC() ([]client.Object, error) {
	objects := resourcemanager.ShootRights()
	if in.hasWorkers() {
		values := resourcemanager.ShootValues{Namespace: in.Namespace, Nodes: in.managedNodes()}
		objects = append(objects, resourcemanager.NodeRegistrations(values, []byte(in.bundle(constants.SecretNameCACluster)))...)
	}
	return objects, nil
}

func (in Inputs) namespaces() ([]client.Object, error) {
	return shootsystem.Namespaces(in.hasWorkers(), in.systemZones()), nil
}

func (in Inputs) gardenerAccess() ([]client.Object, error) { return shootsystem.Access(), nil }

func (in Inputs) controllerManagerRBAC() ([]client.Object, error) {
	return kubecontrollermanager.ShootObjects(), nil
}

func (in Inputs) system() ([]client.Object, error) {
	objects := shootsystem.Objects(shootsystem.Values{
		Shoot: in.Shoot, Project: in.Project, ServiceNetworks: in.serviceNetworks(), Extensions: in.extensions(),
	})
	if !in.hasWorkers() {
		return objects, nil
	}
	addresses, err := in.dnsAddresses()
	if err != nil {
		return nil, err
	}
	policies, err := shootsystem.NetworkPolicies(addresses)
	return append(objects, policies...), err
}

func (in Inputs) clusterIdentity() ([]client.Object, error) {
	return clusteridentity.Objects(clusteridentity.Values{Identity: in.ClusterIdentity, Origin: clusteridentity.OriginShoot})
}
