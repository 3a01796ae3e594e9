// Package kubeapiserver has the API server of a shoot without workers: its Deployment with all flags and files, its Service, and what scales
// it. Names, labels, ports and flags are those of Gardener.
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

// Name is that of the Deployment, the Service and the Secret with the certificate of the server.
const Name = "kube-apiserver"

// The names of the configs of Secrets.
const (
	SecretServer       = Name
	SecretAggregator   = "kube-aggregator"             //nolint:gosec // a name
	SecretStaticTokens = "kube-apiserver-static-token" //nolint:gosec // a name
	// HealthCheckUser is the user of the probes: it has a static token and no rights beyond those of all users.
	HealthCheckUser = "health-check"
)

// port is that of the Pods and of the Service.
const port = 443

// Mounted are the names of the Secrets that the Pods mount.
type Mounted struct {
	// CA, ClientCA, FrontProxyCA and EtcdCA are bundles.
	CA, ClientCA, FrontProxyCA, EtcdCA string
	// Server and Aggregator are certificates, EtcdClient is that for etcd.
	Server, Aggregator, EtcdClient string
	// ServiceAccountKey signs tokens, ServiceAccountKeys has all keys whose tokens are accepted.
	ServiceAccountKey, ServiceAccountKeys string
	// StaticTokens is the Secret of the config SecretStaticTokens.
	StaticTokens string
}

// Values are what the objects depend on.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// Image is the image with the name of the constant Image.
	Image string
	// Config is spec.kubernetes.kubeAPIServer of the Shoot, with its defaults.
	Config corev1beta1.KubeAPIServerConfig
	// Replicas are 0 while the shoot hibernates; otherwise those of a new Deployment, which an autoscaler changes later.
	Replicas int32
	// Scaling says between how many replicas the autoscaler chooses.
	Scaling Scaling
	// VerticalPodAutoscaler has the requests adapted. The seed must know the kind.
	VerticalPodAutoscaler bool
	// ExternalHostname is the name in URLs that clients get from the server, such as that of its issuer of tokens.
	ExternalHostname string
	// DNSNames are those that clients reach the server by from outside.
	DNSNames []string
	// ServiceNetworks are the ranges of Services, in CIDR notation.
	ServiceNetworks []string
	// Mounted are the Secrets with certificates and keys.
	Mounted Mounted
	// Encryption is the Secret with the configuration of what is encrypted in etcd: see secrets.Encryption.
	Encryption *corev1.Secret
	// HealthCheckToken is the token of HealthCheckUser.
	HealthCheckToken string
	// Given are the contents of the objects of the garden that Config names.
	Given Given
}

// Scaling are the limits of an autoscaler.
type Scaling struct {
	Min, Max int32
	// NeverDown keeps the autoscaler from removing replicas.
	NeverDown bool
}

// Given are contents of objects that users have in the garden.
type Given struct {
	// AuditPolicy, Authentication and Authorization are files; empty for none.
	AuditPolicy, Authentication, Authorization string
	// AuthorizerKubeconfigs by the names of the authorizers, and AdmissionKubeconfigs by those of the plugins.
	AuthorizerKubeconfigs, AdmissionKubeconfigs map[string][]byte
}

// selector are the labels that select the Pods.
var selector = parts.ControlPlane("apiserver")

// Secrets are the certificates, keys and tokens that the API server needs beside its authorities.
func Secrets(values Values) []secrets.Config {
	names := append(parts.ServiceNames(values.Namespace, Name), "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost")
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
		// Extensions' API servers learn a new authority after this server, from a ConfigMap in the cluster.
		{Name: SecretAggregator, Kind: secrets.KindClient, CommonName: "system:kube-aggregator", SignedBy: constants.SecretNameCAFrontProxy, ByOther: true},
		{Name: SecretStaticTokens, Kind: secrets.KindStaticToken, Users: []secrets.User{{Name: HealthCheckUser}}, Persist: true},
	}
}

// Objects returns the Deployment and what it uses. The error names the field of the Shoot that is not valid.
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
		objects = append(objects, parts.NewAutoscaler(values.Namespace, Name+"-vpa", Name,
			map[string]any{"containerName": Name, "controlledValues": "RequestsOnly", "minAllowed": minAllowed(values.Config)},
			map[string]any{"containerName": "*", "mode": "Off"}))
	}
	return objects, nil
}

// minAllowed returns the least requests: those that the Shoot names in place of the ones that fit any shoot.
func minAllowed(config corev1beta1.KubeAPIServerConfig) map[string]any {
	least := map[string]any{"cpu": "20m", "memory": "200M"}
	if config.Autoscaling != nil {
		for resource, quantity := range config.Autoscaling.MinAllowed {
			least[string(resource)] = quantity.String()
		}
	}
	return least
}

// configured are the objects with the files of the API server; nil for one that is not needed.
type configured struct {
	admission, audit, authentication, authorization *corev1.ConfigMap
	admissionKubeconfigs, authorizerKubeconfigs     *corev1.Secret
}

func (c configured) objects() []client.Object {
	var objects []client.Object
	for _, configMap := range []*corev1.ConfigMap{c.admission, c.audit, c.authentication, c.authorization} {
		objects = append(objects, configMap)
	}
	for _, secret := range []*corev1.Secret{c.admissionKubeconfigs, c.authorizerKubeconfigs} {
		if secret != nil {
			objects = append(objects, secret)
		}
	}
	return objects
}

// invalid says which field of the Shoot is not valid.
func invalid(field string, err error) error {
	return fmt.Errorf("spec.kubernetes.kubeAPIServer.%s: %w", field, err)
}

// raw returns the text of a field that has any content.
func raw(extension *runtime.RawExtension) []byte {
	if extension == nil {
		return nil
	}
	return extension.Raw
}
