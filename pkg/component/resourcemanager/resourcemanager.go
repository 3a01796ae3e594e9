// Package resourcemanager contains the resource-manager of a seed: the program, its configuration and permissions, and
// the registration of its webhooks.
package resourcemanager

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/pkg/webhooks/seccompprofile"
	"github.com/trellis-k8s/trellis/pkg/webhooks/tokenmount"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// Image is the name of the image.
const Image = "resource-manager"

// SecretServer is the name of the config of the webhooks' certificate.
const SecretServer = "gardener-resource-manager-server"

// Name is the name of all objects in the namespace. The chart uses the same name, so that the flow takes over the
// objects that the chart has installed. It is also the default name of the leader election Lease.
const Name = "gardener-resource-manager"

// clusterRole is the name of the ClusterRole in a seed.
const clusterRole = "gardener-resource-manager-seed"

// The ports of the Pods, and the port of the Service for webhooks.
const (
	portWebhooks = 10250
	portHealth   = 8081
	portMetrics  = 8080
	portServer   = 443
)

const (
	configFile     = "config.yaml"
	configPath     = "/etc/resource-manager/config"
	serverCertPath = "/etc/resource-manager/tls"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace of the resource-manager: garden.
	Namespace string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Replicas is 2, or 1 if the cluster has only one node.
	Replicas int32
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The cluster must define the kind.
	VerticalPodAutoscaler bool
	// ServerCertificate is the Secret of the config SecretServer. CABundle is the PEM bundle with which API servers verify
	// it.
	ServerCertificate string
	CABundle          []byte
	// PriorityClass of the Pods; empty for that of seeds.
	PriorityClass string
	// Seed are the settings of a seed's resource-manager.
	Seed SeedSettings
}

// selector selects the Pods. It is the same as in the chart.
var selector = map[string]string{"app": Name}

// Secrets returns the configs of the certificates of the component, signed by the named authority.
func Secrets(values Values, authority string) []secrets.Config {
	return []secrets.Config{{
		Name: SecretServer, Kind: secrets.KindServer, CommonName: Name,
		DNSNames: parts.ServiceNames(values.Namespace, Name), SignedBy: authority, ByOther: true,
	}}
}

// Objects returns the objects of the component. It returns an error if the configuration is invalid.
func Objects(values Values) ([]client.Object, error) {
	config := seedConfiguration(values)
	text, err := configurationText(config)
	if err != nil {
		return nil, err
	}
	labels := parts.Merge(selector, map[string]string{constants.LabelGardenRole: constants.RoleSeed})
	configMap, err := parts.Configuration(values.Namespace, Name, labels, configFile, text)
	if err != nil {
		return nil, err
	}
	deployment, err := deployment(values, labels, configMap.Name)
	if err != nil {
		return nil, err
	}
	account := parts.Account{Namespace: values.Namespace, Name: Name}
	objects := []client.Object{
		parts.ServiceAccount(values.Namespace, Name, labels), configMap, service(values.Namespace, labels), deployment,
		parts.Budget(deployment),
	}
	objects = append(objects, parts.ClusterRights(clusterRole, labels, parts.Everything(), account)...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(deployment, "30Mi"))
	}
	return append(objects, registrations(values, config, labels)...), nil
}

// registrations returns the webhook configurations for the enabled webhooks.
func registrations(values Values, config *configv1alpha1.ResourceManagerConfiguration, labels map[string]string) []client.Object {
	enabled := webhooks.Enabled(webhooks.Table(), &config.Webhooks)
	reach := webhookserver.AtService(values.Namespace, Name, 443, values.CABundle)
	var objects []client.Object
	if mutating := webhooks.MutatingConfiguration(enabled, webhooks.Placement{}, reach); mutating != nil {
		mutating.Labels = parts.Merge(mutating.Labels, labels)
		objects = append(objects, mutating)
	}
	if validating := webhooks.ValidatingConfiguration(enabled, webhooks.Placement{}, reach); validating != nil {
		validating.Labels = parts.Merge(validating.Labels, labels)
		objects = append(objects, validating)
	}
	return objects
}

func service(namespace string, labels map[string]string) *corev1.Service {
	port := func(name string, port, target int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: port, TargetPort: intstr.FromInt32(target), Protocol: corev1.ProtocolTCP}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name, Labels: labels,
			Annotations: map[string]string{
				netpol.AliasAnnotation(constants.NetworkPolicyAllSeedScrapeTargets): parts.PortsAllowed(portMetrics),
				netpol.AnnotationFromWorld: parts.PortsAllowed(portWebhooks), // API servers are not Pods
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			Ports: []corev1.ServicePort{
				port("metrics", portMetrics, portMetrics), port("health", portHealth, portHealth), port("server", portServer, portWebhooks),
			},
		},
	}
}

func deployment(values Values, labels map[string]string, configMap string) (*appsv1.Deployment, error) {
	const config, certificate, health = "config", "tls", "health"
	container := corev1.Container{
		Name: Name, Image: values.Image, Args: []string{"--config=" + configPath + "/" + configFile},
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: portMetrics, Protocol: corev1.ProtocolTCP},
			{Name: health, ContainerPort: portHealth, Protocol: corev1.ProtocolTCP},
			{Name: "webhooks", ContainerPort: portWebhooks, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe: parts.Probe("/healthz", health), ReadinessProbe: parts.Probe("/readyz", health),
		Resources:    corev1.ResourceRequirements{Requests: parts.Requests("50m", "128Mi")},
		VolumeMounts: []corev1.VolumeMount{parts.Mount(config, configPath), parts.Mount(certificate, serverCertPath)},
	}
	container.LivenessProbe.InitialDelaySeconds, container.LivenessProbe.FailureThreshold = 30, 5
	return parts.Workload{
		Namespace: values.Namespace, Name: Name, Selector: selector,
		Labels: parts.Merge(labels, map[string]string{highavailability.LabelSkip: "true"}), // it must not wait for its own webhook
		PodLabels: parts.Merge(labels, map[string]string{
			tokenmount.LabelSkip:                           "true",
			seccompprofile.LabelSkip:                       "true",
			constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		}),
		Replicas: values.Replicas, PriorityClass: cmp.Or(values.PriorityClass, constants.PriorityClassSystemCritical), ServiceAccount: Name, MountsToken: true,
		Container: container, Spread: parts.Spread(selector),
		Volumes: []corev1.Volume{parts.ConfigVolume(config, configMap), parts.SecretVolume(certificate, values.ServerCertificate)},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
	}.Deployment()
}
