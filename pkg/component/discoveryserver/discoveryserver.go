// Package discoveryserver contains the discovery server of a garden: it runs in the runtime cluster, and publishes what it reads in the virtual garden.
// Names and ports are the same as in Gardener.
package discoveryserver

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Image is the name of the image.
const Image = "discovery-server"

// Name is the name of the Deployment, the Service, the account in the virtual garden, and the config of the Secret with the certificate.
const Name = "gardener-discovery-server"

// HostSecret is the name of the Secret of the virtual garden with the host of managed issuers.
const HostSecret = "shoot-service-account-issuer"

// Port is the port of the Service.
const Port = 443

// Ports of the Pods.
const (
	portServer  = 10443
	portMetrics = 8080
	portHealth  = 8081
)

const (
	pathCertificate = "/etc/gardener-discovery-server/tls"
	pathDocuments   = "/etc/gardener-discovery-server/workload-identity"
	// Files of the documents of WorkloadIdentities.
	fileConfiguration = "openid-configuration.json"
	fileKeys          = "jwks.json"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace in the runtime cluster.
	Namespace string
	// Image is the reference of the image named by the constant Image.
	Image    string
	Replicas int32
	// Certificate is the Secret with the certificate for the host.
	Certificate string
	// Kubeconfig is the Secret of the config generic-token-kubeconfig.
	Kubeconfig string
	// Identities are the documents of the issuer of WorkloadIdentities.
	Identities issuer.Documents
	// Balancer are the settings of a load balancer of its own; nil for none.
	Balancer *exposure.Balancer
}

// selector selects the Pods.
var selector = map[string]string{"app": "gardener", "role": "discovery-server"}

// Secrets returns the config of the certificate that the server has unless the Garden names another one.
func Secrets(namespace, host, authority string) []secrets.Config {
	return []secrets.Config{{
		Name: Name, Kind: secrets.KindServer, CommonName: Name, DNSNames: append(parts.ServiceNames(namespace, Name), host), SignedBy: authority,
		ByOther: true,
	}}
}

// AccessSecret returns the Secret with the token for the virtual garden.
func AccessSecret(namespace string) *corev1.Secret { return parts.AccessSecret(namespace, Name) }

// RuntimeObjects returns the objects in the runtime cluster.
func RuntimeObjects(values Values) ([]client.Object, error) {
	// Its name does not depend on the documents: the server reloads them, so that a new key needs no rollout.
	documents := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: values.Namespace, Name: Name + "-workload-identity", Labels: parts.Merge(selector)},
		Data:       map[string]string{fileConfiguration: values.Identities.Configuration, fileKeys: values.Identities.Keys},
	}
	deployment, err := values.deployment(documents.Name)
	if err != nil {
		return nil, err
	}
	return []client.Object{documents, deployment, parts.Budget(deployment), values.service()}, nil
}

// VirtualObjects returns the objects in the virtual garden: the right to read the documents of Shoots, and the host of managed issuers for gardenlets.
func VirtualObjects(host string) []client.Object {
	rules := []rbacv1.PolicyRule{parts.Rule("", []string{"secrets"}, "list", "watch")}
	account := parts.Account{Namespace: metav1.NamespaceSystem, Name: Name}
	return append(parts.Rights(constants.SystemShootIssuerNamespace, Name, selector, rules, account), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: constants.GardenNamespace, Name: HostSecret, Labels: map[string]string{constants.LabelGardenRole: constants.RoleShootServiceAccountIssuer},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{issuer.KeyHost: []byte(host)},
	})
}

func (v Values) deployment(documents string) (*appsv1.Deployment, error) {
	access, mount := parts.ShootAccess(v.Kubeconfig, parts.AccessSecretName(Name))
	readiness := parts.HTTPProbe("/readyz", portHealth, corev1.URISchemeHTTP)
	readiness.PeriodSeconds = 5
	return parts.Workload{
		Namespace: v.Namespace, Name: Name, Selector: selector, Replicas: v.Replicas, Labels: map[string]string{highavailability.LabelType: parts.TypeServer},
		PodLabels: map[string]string{
			constants.LabelNetworkPolicyToDNS:                                             constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + constants.PrefixVirtualGarden + "kube-apiserver-tcp-443": netpol.LabelValue,
		},
		PriorityClass: constants.PriorityClassGardenSystem200,
		Container: corev1.Container{
			Name: Name, Image: v.Image, Args: []string{
				"--kubeconfig=" + parts.ShootKubeconfig, "--tls-cert-file=" + pathCertificate + "/tls.crt", "--tls-private-key-file=" + pathCertificate + "/tls.key",
				"--workload-identity-openid-configuration-file=" + pathDocuments + "/" + fileConfiguration,
				"--workload-identity-jwks-file=" + pathDocuments + "/" + fileKeys,
				"--address=:" + strconv.Itoa(portServer), "--health-address=:" + strconv.Itoa(portHealth), "--metrics-address=:" + strconv.Itoa(portMetrics),
			},
			Ports: []corev1.ContainerPort{
				{Name: "https", ContainerPort: portServer, Protocol: corev1.ProtocolTCP}, {Name: "health", ContainerPort: portHealth, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: portMetrics, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe: readiness, LivenessProbe: parts.HTTPProbe("/healthz", portHealth, corev1.URISchemeHTTP),
			Resources:    corev1.ResourceRequirements{Requests: parts.Requests("50m", "128Mi")},
			VolumeMounts: []corev1.VolumeMount{mount, parts.Mount("tls", pathCertificate), parts.Mount("workload-identity", pathDocuments)},
		},
		Volumes: []corev1.Volume{access, parts.SecretVolume("tls", v.Certificate), parts.ConfigVolume("workload-identity", documents)},
	}.Deployment()
}

// service returns the Service. Everybody may connect to its load balancer, because the documents are public.
func (v Values) service() *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: Name, Labels: parts.Merge(selector),
			Annotations: map[string]string{netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): parts.PortsAllowed(portMetrics)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Ports: []corev1.ServicePort{{Name: "https", Port: Port, TargetPort: intstr.FromInt32(portServer), Protocol: corev1.ProtocolTCP}},
		},
	}
	if balancer := v.Balancer; balancer != nil {
		parts.Balance(service, *balancer, portServer)
	}
	return service
}
