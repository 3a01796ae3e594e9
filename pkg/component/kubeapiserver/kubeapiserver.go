// Package kubeapiserver contains the API server of a shoot: its Deployment with all flags and files,
// its Service, and its autoscalers. Names, labels, ports and flags are the same as in Gardener.
package kubeapiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Image is the name of the image.
const Image = "kube-apiserver"

// Name is the name of the Deployment, the Service and the Secret with the server certificate.
const Name = "kube-apiserver"

// The names of the configs of Secrets.
const (
	SecretServer       = Name
	SecretAggregator   = "kube-aggregator"             //nolint:gosec // a name
	SecretStaticTokens = "kube-apiserver-static-token" //nolint:gosec // a name
	// HealthCheckUser is the user of the probes. It has a static token and only the default permissions of all users.
	HealthCheckUser = "health-check"
)

// port is the port of the Pods and of the Service.
const port = 443

// Mounted are the names of the Secrets that the Pods mount.
type Mounted struct {
	// CA, ClientCA, FrontProxyCA and EtcdCA are CA bundles.
	CA, ClientCA, FrontProxyCA, EtcdCA string
	// Server and Aggregator are certificates, EtcdClient is the client certificate for etcd.
	Server, Aggregator, EtcdClient string
	// ServiceAccountKey is the signing key of tokens, ServiceAccountKeys contains all keys whose tokens are accepted.
	ServiceAccountKey, ServiceAccountKeys string
	// StaticTokens is the Secret of the config SecretStaticTokens.
	StaticTokens string
	// SNI is the certificate for further host names; empty for none.
	SNI string
	// KubeletCA is the bundle of the CA that signs the certificates of kubelets, and KubeletClient the certificate with which the API
	// server authenticates itself to kubelets. Both are empty for a shoot without workers.
	KubeletCA, KubeletClient string
	// VPNCA is the bundle of the CA of the servers of the tunnel to nodes, Pods and Services, and VPNClient the certificate with which the API
	// server authenticates itself to them. Both are empty for an API server that reaches its nodes directly.
	VPNCA, VPNClient string
}

// hasNodes reports whether the shoot has workers.
func (m Mounted) hasNodes() bool { return m.KubeletCA != "" }

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// NamePrefix is the prefix of the names of all objects, and of the etcd clusters; empty for a shoot.
	NamePrefix string
	// PriorityClass of the Pods; empty for that of control planes of shoots.
	PriorityClass string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Garden are the settings that only the API server of a garden has; nil for a shoot.
	Garden *GardenSettings
	// Config is spec.kubernetes.kubeAPIServer of the Shoot, with defaults.
	Config corev1beta1.KubeAPIServerConfig
	// Replicas is 0 while the shoot is hibernated. Otherwise it is the number of replicas of a new Deployment, which an
	// autoscaler changes later.
	Replicas int32
	// Scaling contains the limits of the horizontal autoscaler.
	Scaling Scaling
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
	// ExternalHostname is the host name in URLs that the server returns to clients, such as the issuer of tokens.
	ExternalHostname string
	// ManagedIssuer is the issuer of tokens that the garden publishes; empty if the server is its own issuer.
	ManagedIssuer string
	// Exposed is set if clients outside of the cluster reach the server through shared gateways.
	Exposed bool
	// AdvertiseAddress is the address in the endpoints of the Service kubernetes of the cluster, or empty for those of the Pods.
	AdvertiseAddress string
	// DNSNames are the host names at which external clients reach the server.
	DNSNames []string
	// ServiceNetworks are the Service ranges in CIDR notation.
	ServiceNetworks []string
	// Mounted are the Secrets with certificates and keys.
	Mounted Mounted
	// Encryption is the Secret with the encryption configuration of etcd data: see secrets.Encryption.
	Encryption *corev1.Secret
	// HealthCheckToken is the token of HealthCheckUser.
	HealthCheckToken string
	// Given are the contents of garden objects that Config references.
	Given Given
}

// Scaling are the limits of an autoscaler.
type Scaling struct {
	Min, Max int32
	// NeverDown keeps the autoscaler from removing replicas.
	NeverDown bool
}

// Given are the contents of user objects in the garden.
type Given struct {
	// AuditPolicy, Authentication and Authorization are files; empty for none.
	AuditPolicy, Authentication, Authorization string
	// AuthorizerKubeconfigs by authorizer name, and AdmissionKubeconfigs by plugin name.
	AuthorizerKubeconfigs, AdmissionKubeconfigs map[string][]byte
}

// name returns the name of the Deployment and the Service.
func (v Values) name() string { return v.NamePrefix + Name }

// selector selects the Pods.
var selector = parts.ControlPlane("apiserver")

// Secrets returns the configs of the certificates, keys and tokens of the API server, except its CAs.
func Secrets(values Values) []secrets.Config {
	names := append(parts.ServiceNames(values.Namespace, values.name()),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost")
	addresses := []string{"127.0.0.1", "::1"}
	for _, network := range values.ServiceNetworks {
		if first := firstAddress(network); first != "" {
			addresses = append(addresses, first)
		}
	}
	return []secrets.Config{
		{
			Name: SecretServer, Kind: secrets.KindServer, CommonName: Name, DNSNames: append(names, values.DNSNames...), IPAddresses: addresses,
			SignedBy: constants.SecretNameCACluster,
		},
		// API servers of extensions read a new CA later than this server, from a ConfigMap in the cluster.
		{
			Name: SecretAggregator, Kind: secrets.KindClient, CommonName: "system:kube-aggregator",
			SignedBy: constants.SecretNameCAFrontProxy, ByOther: true,
		},
		{Name: SecretStaticTokens, Kind: secrets.KindStaticToken, Users: []secrets.User{{Name: HealthCheckUser}}, Persist: true},
	}
}

// Objects returns the Deployment and the objects that it uses. The error names the invalid field of the Shoot.
func Objects(values Values) ([]client.Object, error) {
	configured, err := configurations(values)
	if err != nil {
		return nil, err
	}
	deployment, err := deployment(values, configured)
	if err != nil {
		return nil, err
	}
	objects := append(configured.objects(), values.Encryption, deployment, parts.Budget(deployment))
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.NewAutoscaler(values.Namespace, values.name()+"-vpa", values.name(),
			map[string]any{"containerName": Name, "controlledValues": "RequestsOnly", "minAllowed": minAllowed(values.Config)},
			map[string]any{"containerName": "*", "mode": "Off"}))
	}
	return objects, nil
}

// minAllowed returns the minimum requests of the autoscaler. Values of the Shoot replace the defaults.
func minAllowed(config corev1beta1.KubeAPIServerConfig) map[string]any {
	least := map[string]any{"cpu": "20m", "memory": "200M"}
	if config.Autoscaling != nil {
		for resource, quantity := range config.Autoscaling.MinAllowed {
			least[string(resource)] = quantity.String()
		}
	}
	return least
}

// configured are the objects with the configuration files; nil for an object that is not needed.
type configured struct {
	admission, audit, authentication, authorization *corev1.ConfigMap
	// egress is nil without a tunnel.
	egress *corev1.ConfigMap
	// webhookKubeconfigs are those of the webhooks of a garden.
	admissionKubeconfigs, authorizerKubeconfigs, webhookKubeconfigs *corev1.Secret
}

func (c configured) objects() []client.Object {
	var objects []client.Object
	for _, configMap := range []*corev1.ConfigMap{c.admission, c.audit, c.authentication, c.authorization} {
		objects = append(objects, configMap)
	}
	if c.egress != nil {
		objects = append(objects, c.egress)
	}
	for _, secret := range []*corev1.Secret{c.admissionKubeconfigs, c.authorizerKubeconfigs, c.webhookKubeconfigs} {
		if secret != nil {
			objects = append(objects, secret)
		}
	}
	return objects
}

// invalid adds the path of the invalid field of the Shoot to an error.
func invalid(field string, err error) error {
	return fmt.Errorf("spec.kubernetes.kubeAPIServer.%s: %w", field, err)
}

// raw returns the content of an optional field.
func raw(extension *runtime.RawExtension) []byte {
	if extension == nil {
		return nil
	}
	return extension.Raw
}
