// Package vpa contains the Vertical Pod Autoscaler of a seed: the recommender, the updater and the admission controller
// of Kubernetes. Names and settings are the same as in Gardener.
package vpa

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// The names of the images.
const (
	ImageAdmissionController = "vpa-admission-controller"
	ImageRecommender         = "vpa-recommender"
	ImageUpdater             = "vpa-updater"
)

// SecretServer is the name of the config of the admission controller's webhook certificate.
const SecretServer = "vpa-admission-controller-server" //nolint:gosec // a name

// The names of the programs and of their objects.
const (
	admissionController = "vpa-admission-controller"
	recommender         = "vpa-recommender"
	updater             = "vpa-updater"
)

const (
	// role is the value of the label gardener.cloud/role on all objects.
	role = "vpa"
	// webhookService is the Service of the admission controller.
	webhookService = "vpa-webhook"

	portServer  = 10250
	portMetrics = "metrics"
	tlsPath     = "/etc/tls-certs"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace of the programs: garden.
	Namespace string
	// AdmissionControllerImage, RecommenderImage and UpdaterImage are the references of the images named by the constants.
	AdmissionControllerImage, RecommenderImage, UpdaterImage string
	// FeatureGates and MaxAllowed are fields of settings.verticalPodAutoscaler of the Seed.
	FeatureGates map[string]bool
	MaxAllowed   corev1.ResourceList
	// ServerCertificate is the Secret of the config SecretServer. CABundle is the PEM bundle with which API servers verify
	// it.
	ServerCertificate string
	CABundle          []byte
	// AdmissionPriorityClass is the PriorityClass of the admission controller, and PriorityClass that of the other programs; empty for those of
	// a seed.
	AdmissionPriorityClass, PriorityClass string
}

// SetImages sets the images. image returns the reference of an image by its name.
func (v *Values) SetImages(image func(name string) (string, error)) (err error) {
	for _, wanted := range []struct {
		name string
		into *string
	}{
		{ImageAdmissionController, &v.AdmissionControllerImage}, {ImageRecommender, &v.RecommenderImage}, {ImageUpdater, &v.UpdaterImage},
	} {
		if *wanted.into, err = image(wanted.name); err != nil {
			return err
		}
	}
	return nil
}

// Secrets returns the configs of the certificates of the component, signed by the named authority.
func Secrets(values Values, authority string) []secrets.Config {
	return []secrets.Config{{
		Name: SecretServer, Kind: secrets.KindServer, CommonName: "vpa-webhook." + values.Namespace + ".svc",
		DNSNames: parts.ServiceNames(values.Namespace, webhookService), SignedBy: authority, ByOther: true,
	}}
}

// Objects returns the objects of the component. It returns an error for a resource that cannot have a maximum.
func Objects(values Values) ([]client.Object, error) {
	limits, err := maxAllowed(values.MaxAllowed)
	if err != nil {
		return nil, err
	}
	objects := append(rights(rolePrefixSeed, values.Namespace), service(values.Namespace), registration(webhookConfiguration, inSeed(values)))
	for _, program := range []program{
		{
			name: admissionController, image: values.AdmissionControllerImage, port: 8944, priority: cmp.Or(values.AdmissionPriorityClass, constants.PriorityClassSystem800),
			typ: "server", args: admissionControllerArgs(), certificate: values.ServerCertificate,
			// The memory grows with the number of Pods and autoscalers.
			requests: parts.Requests("10m", "30Mi"),
		},
		{
			name: recommender, image: values.RecommenderImage, port: 8942, priority: cmp.Or(values.PriorityClass, constants.PriorityClassSystem700),
			typ: "controller", args: append(recommenderArgs(values.Namespace), limits...), requests: parts.Requests("10m", "40Mi"),
		},
		{
			name: updater, image: values.UpdaterImage, port: 8943, priority: cmp.Or(values.PriorityClass, constants.PriorityClassSystem700),
			typ: "controller", args: updaterArgs(values.Namespace), requests: parts.Requests("10m", "30Mi"),
		},
	} {
		made, err := program.objects(values)
		if err != nil {
			return nil, err
		}
		objects = append(objects, made...)
	}
	return objects, nil
}

// program is one of the three programs.
type program struct {
	name, image, priority string
	// typ is the component type, which determines the number of replicas in a highly available seed.
	typ         string
	args        []string
	port        int32
	certificate string
	requests    corev1.ResourceList
}

func (p program) objects(values Values) ([]client.Object, error) {
	labels := labelsOf(p.name)
	deployment, err := p.deployment(values, labels)
	if err != nil {
		return nil, err
	}
	return []client.Object{
		parts.ServiceAccount(values.Namespace, p.name, labels), deployment, parts.Budget(deployment), parts.Autoscaler(deployment, ""),
	}, nil
}

func (p program) deployment(values Values, labels map[string]string) (*appsv1.Deployment, error) {
	container := corev1.Container{
		Name: strings.TrimPrefix(p.name, "vpa-"), Image: p.image, Args: append(p.args, featureGates(values.FeatureGates)...),
		// The namespace of the Lease through which the updater monitors the admission controller.
		Env: []corev1.EnvVar{{Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
		}}},
		Ports:         []corev1.ContainerPort{{Name: portMetrics, ContainerPort: p.port, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: parts.Probe("/health-check", portMetrics), ReadinessProbe: parts.Probe("/health-check", portMetrics),
		Resources: corev1.ResourceRequirements{Requests: p.requests},
	}
	var volumes []corev1.Volume
	if p.certificate != "" {
		server := corev1.ContainerPort{Name: "server", ContainerPort: portServer, Protocol: corev1.ProtocolTCP}
		container.Ports = append(container.Ports, server)
		container.VolumeMounts = []corev1.VolumeMount{parts.Mount("tls", tlsPath)}
		volumes = []corev1.Volume{parts.SecretVolume("tls", p.certificate)}
	}
	return parts.Workload{
		Namespace: values.Namespace, Name: p.name, Selector: map[string]string{"app": p.name},
		Labels: parts.Merge(labels, map[string]string{highavailability.LabelType: p.typ}),
		PodLabels: parts.Merge(labels, map[string]string{
			constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		}),
		Replicas: 1, PriorityClass: p.priority, ServiceAccount: p.name, Container: container, Volumes: volumes,
	}.Deployment()
}

func labelsOf(app string) map[string]string {
	return map[string]string{"app": app, constants.LabelGardenRole: role}
}

// service returns the Service of the webhook. API servers are not Pods in every cluster, so all clients may connect.
func service(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: webhookService, Labels: labelsOf(admissionController),
			Annotations: map[string]string{netpol.AnnotationFromWorld: parts.PortsAllowed(portServer)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": admissionController},
			Ports: []corev1.ServicePort{{Name: "server", Port: 443, TargetPort: intstr.FromInt32(portServer), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// featureGates returns the same feature gates for all three programs. Each program knows all of them. It does not start
// with an unknown one.
func featureGates(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	var list []string
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		list = append(list, fmt.Sprintf("%s=%t", gate, gates[gate]))
	}
	return []string{"--feature-gates=" + strings.Join(list, ",")}
}
