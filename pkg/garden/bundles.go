package garden

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/discoveryserver"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/shootsystem"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// The limits of the API server's autoscaler (Gardener).
const (
	serversMin          = 2
	serversMinAvailable = 3
	serversMax          = 6
)

// etcdValues returns the values of an etcd cluster.
func (in Inputs) etcdValues(role etcd.Role) etcd.Values {
	values := etcd.Values{
		Namespace: in.Namespace, NamePrefix: prefix, Role: role, Replicas: 1, HighlyAvailable: in.highlyAvailable(),
		PriorityClass: constants.PriorityClassGardenSystem500, Storage: etcd.Storage(role, nil), VerticalPodAutoscaler: true,
		Defragmentation: in.defragmentation(), CA: in.trusted(constants.SecretNameCAETCD), Server: in.secret(etcd.SecretServer(role)),
		Backup: in.backup(role),
		Client: in.secret(etcd.SecretClient),
	}
	if in.highlyAvailable() {
		values.Replicas, values.PeerCA, values.Peer = 3, in.trusted(constants.SecretNameCAETCDPeer), in.secret(etcd.SecretPeer(role))
	}
	settings := ptr.Deref(in.virtual().ETCD, operatorv1alpha1.ETCD{})
	var storage *operatorv1alpha1.Storage
	switch {
	case role == etcd.RoleMain && settings.Main != nil:
		values.Autoscaling, storage = settings.Main.Autoscaling, settings.Main.Storage
	case role == etcd.RoleEvents && settings.Events != nil:
		values.Autoscaling, storage = settings.Events.Autoscaling, settings.Events.Storage
	}
	if storage != nil {
		values.Storage, values.StorageClass = ptr.Deref(storage.Capacity, resource.MustParse("10Gi")), storage.ClassName
	}
	if volume := in.Garden.Spec.RuntimeCluster.Volume; volume != nil && volume.MinimumSize != nil && volume.MinimumSize.Cmp(values.Storage) > 0 {
		values.Storage = *volume.MinimumSize
	}
	return values
}

// etcd returns the function for the objects of an etcd cluster.
func (in Inputs) etcd(role etcd.Role) func() ([]client.Object, error) {
	return func() ([]client.Object, error) { return etcd.Objects(in.etcdValues(role)) }
}

// defragmentation returns the schedule of the defragmentation of etcd: once a day in the maintenance window.
func (in Inputs) defragmentation() string {
	window, err := maintenance.Parse(in.virtual().Maintenance.TimeWindow.Begin, in.virtual().Maintenance.TimeWindow.End)
	if err != nil {
		return "0 1 * * *" // the definition of the kind allows no other format
	}
	return window.From(in.Owner.UID).Schedule()
}

// scale returns the limits of the API server's autoscaler.
func (in Inputs) scale() kubeapiserver.Scaling {
	scaling := kubeapiserver.Scaling{Min: in.replicas(serversMin), Max: serversMax}
	if in.highlyAvailable() {
		scaling.Min = in.replicas(serversMinAvailable)
	}
	return scaling
}

func (in Inputs) apiServer() ([]client.Object, error) {
	image, err := in.image(kubeapiserver.Image)
	if err != nil {
		return nil, err
	}
	given, settings, err := in.serverFiles()
	if err != nil {
		return nil, err
	}
	encryption, err := in.encryptionSecret()
	if err != nil {
		return nil, err
	}
	token, err := in.Secrets[kubeapiserver.SecretStaticTokens].Token(kubeapiserver.HealthCheckUser)
	if err != nil {
		return nil, err
	}
	return kubeapiserver.Objects(kubeapiserver.Values{
		Namespace: in.Namespace, NamePrefix: prefix, PriorityClass: constants.PriorityClassGardenSystem500, Image: image,
		Config: in.server().KubeAPIServerConfig, Garden: settings, Replicas: in.scale().Min, Scaling: in.scale(), VerticalPodAutoscaler: true,
		ExternalHostname: in.outsideHost(), ServiceNetworks: in.virtual().Networking.Services, Encryption: encryption, HealthCheckToken: token,
		Given: given,
		Mounted: kubeapiserver.Mounted{
			CA: in.trusted(constants.SecretNameCACluster), ClientCA: in.trusted(constants.SecretNameCAClient),
			FrontProxyCA: in.trusted(constants.SecretNameCAFrontProxy), EtcdCA: in.trusted(constants.SecretNameCAETCD),
			EtcdClient: in.secret(etcd.SecretClient), Server: in.secret(kubeapiserver.SecretServer),
			Aggregator: in.secret(kubeapiserver.SecretAggregator), StaticTokens: in.secret(kubeapiserver.SecretStaticTokens),
			ServiceAccountKey:  in.Secrets[constants.SecretNameServiceAccountKey].Active.Name,
			ServiceAccountKeys: in.trusted(constants.SecretNameServiceAccountKey), SNI: in.sniSecret(),
		},
	})
}

func (in Inputs) serverAutoscaler() ([]client.Object, error) {
	return kubeapiserver.AutoscalerNamed(in.Namespace, prefix+kubeapiserver.Name, in.scale())
}

func (in Inputs) virtualManager() ([]client.Object, error) {
	image, err := in.image(resourcemanager.Image)
	if err != nil {
		return nil, err
	}
	namespaces := []string{constants.GardenNamespace, "gardener-system-public", "gardener-system-shoot-issuer"}
	if config := in.virtual().Gardener.GardenerResourceManager; config != nil {
		namespaces = append(namespaces, config.AdditionalTargetNamespaces...)
	}
	return resourcemanager.ShootObjects(resourcemanager.ShootValues{
		Namespace: in.Namespace, NamePrefix: prefix, PriorityClass: constants.PriorityClassGardenSystem400, Image: image, Replicas: in.replicas(2),
		ClusterID: in.virtual().Gardener.ClusterIdentity, LogLevel: in.Config.LogLevel, LogFormat: in.Config.LogFormat,
		Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig), VerticalPodAutoscaler: true, TargetNamespaces: namespaces,
	})
}

// accessSecrets returns the Secrets with tokens of the programs, and those with kubeconfigs of administrators.
func (in Inputs) accessSecrets() ([]client.Object, error) {
	objects, err := shootsystem.AccessSecrets(shootsystem.AccessValues{
		Namespace: in.Namespace, Inside: "https://" + in.insideHost(), Outside: "https://" + in.outsideHost(),
	})
	objects = append(objects, kubecontrollermanager.AccessSecret(in.Namespace), gardenerprograms.AccessSecret(in.Namespace, gardenerprograms.APIServer))
	for _, program := range programs {
		objects = append(objects, gardenerprograms.AccessSecret(in.Namespace, program))
	}
	if in.discovery() != nil {
		objects = append(objects, discoveryserver.AccessSecret(in.Namespace))
	}
	return objects, err
}

func (in Inputs) controllerManager() ([]client.Object, error) {
	image, err := in.image(kubecontrollermanager.Image)
	if err != nil {
		return nil, err
	}
	config := ptr.Deref(in.virtual().Kubernetes.KubeControllerManager, operatorv1alpha1.KubeControllerManagerConfig{})
	values := kubecontrollermanager.Values{
		Namespace: in.Namespace, NamePrefix: prefix, PriorityClass: constants.PriorityClassGardenSystem300, ClusterName: "garden", Image: image,
		Disabled: []string{"serviceaccount-token-controller"}, // tokens are requested, and expire
		Config:   config.KubeControllerManagerConfig, RuntimeConfig: kubeapiserver.RuntimeConfig(in.server().KubeAPIServerConfig, false),
		Replicas: 1, VerticalPodAutoscaler: true, ServiceNetworks: in.virtual().Networking.Services,
		Mounted: kubecontrollermanager.Mounted{
			CA: in.trusted(constants.SecretNameCACluster), ClientCA: in.Secrets[constants.SecretNameCAClient].Active.Name,
			ServiceAccountKey: in.Secrets[constants.SecretNameServiceAccountKey].Active.Name,
			Server:            in.secret(kubecontrollermanager.SecretServer), Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
		},
	}
	if config.CertificateSigningDuration != nil {
		values.SigningDuration = config.CertificateSigningDuration.Duration
	}
	return kubecontrollermanager.Objects(values)
}

func (in Inputs) managerRights() ([]client.Object, error) { return resourcemanager.ShootRights(), nil }

func (in Inputs) controllerManagerRights() ([]client.Object, error) {
	return kubecontrollermanager.ShootObjects(), nil
}

func (in Inputs) operatorAccess() ([]client.Object, error) { return shootsystem.Access(), nil }
