// Package metricsserver contains metrics-server, which reports the use of CPU and memory of nodes and Pods of a shoot. Names and settings
// are the same as in Gardener.
package metricsserver

import (
	"encoding/base64"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Image is the name of the image.
const Image = "metrics-server"

// Name is the name of the Deployment and its Service.
const Name = "metrics-server"

// SecretServer is the name of the config of the server's certificate.
const SecretServer = "metrics-server"

const (
	port     = 8443
	pathCert = "/srv/metrics-server/tls"
)

// Values are the inputs of the component.
type Values struct {
	// Image is the reference of the image named by the constant Image.
	Image string
	// Certificate is the data of the Secret of the config SecretServer.
	Certificate map[string][]byte
	// CABundle is the bundle with which the API server verifies the certificate, in PEM format.
	CABundle []byte
	// ServerHost is the host name of the API server outside of the cluster.
	ServerHost string
	// Registered adds metrics.k8s.io to the API of the cluster. The API server must reach Pods: it deletes no namespace while a registered
	// API does not answer.
	Registered bool
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

// selector selects the Pods.
var selector = map[string]string{"k8s-app": Name}

// Secrets returns the configs of the certificates of the component.
func Secrets() []secrets.Config {
	return []secrets.Config{{
		Name: SecretServer, Kind: secrets.KindServer, CommonName: Name, DNSNames: parts.ServiceNames(metav1.NamespaceSystem, Name),
		SignedBy: constants.SecretNameCAMetricsServer, ByOther: true,
	}}
}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	labels := parts.SystemComponent(selector)
	certificate, err := parts.SecretFiles(metav1.NamespaceSystem, SecretServer, labels, map[string][]byte{
		"tls.crt": values.Certificate["tls.crt"], "tls.key": values.Certificate["tls.key"],
	})
	if err != nil {
		return nil, err
	}
	deployment, err := deployment(values, certificate.Name)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		parts.ServiceAccount(metav1.NamespaceSystem, Name, labels), certificate,
		parts.SystemService(Name, selector, false, parts.TCPPort("", 443, port)), deployment, parts.SystemBudget(deployment),
	}
	objects = append(objects, rights(labels)...)
	if values.Registered {
		objects = append(objects, registration(values, labels))
	}
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(deployment, "60Mi"))
	}
	return objects, nil
}

func deployment(values Values, certificate string) (*appsv1.Deployment, error) {
	allowed := constants.NetworkPolicyAllowed
	deployment, err := parts.Workload{
		Namespace: metav1.NamespaceSystem, Name: Name, Selector: selector,
		Labels: parts.SystemComponent(map[string]string{highavailability.LabelType: parts.TypeServer}),
		PodLabels: parts.SystemComponent(map[string]string{
			constants.LabelNetworkPolicyFromSeed: allowed, constants.LabelNetworkPolicyToAPIServer: allowed,
			constants.LabelNetworkPolicyToKubelet: allowed, constants.LabelNetworkPolicyToDNS: allowed,
		}),
		Replicas: 2, PriorityClass: parts.PriorityClusterCritical, ServiceAccount: Name, MountsToken: true, Spread: parts.Spread(selector),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Command: command(), Env: parts.ServerHost(values.ServerHost),
			Ports:          []corev1.ContainerPort{{Name: "metrics-server", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe:  parts.HTTPProbe("/livez", port, corev1.URISchemeHTTPS),
			ReadinessProbe: parts.HTTPProbe("/readyz", port, corev1.URISchemeHTTPS), Resources: resources(values),
			VolumeMounts: []corev1.VolumeMount{parts.Mount("certificate", pathCert), {Name: "generated", MountPath: "/home/certdir"}},
		},
		Volumes: []corev1.Volume{
			parts.SecretVolume("certificate", certificate),
			{Name: "generated", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.Tolerations = parts.CriticalTolerations()
	return deployment, nil
}

func command() []string {
	return []string{
		"/metrics-server", "--authorization-always-allow-paths=/livez,/readyz", "--profiling=false", "--cert-dir=/home/certdir", "--secure-port=8443",
		// Kubelets have certificates of an authority that metrics-server does not know.
		"--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP,InternalDNS,ExternalDNS,ExternalIP,Hostname",
		"--tls-cert-file=" + pathCert + "/tls.crt", "--tls-private-key-file=" + pathCert + "/tls.key",
	}
}

// resources limits the memory only if nothing adapts the requests (Gardener).
func resources(values Values) corev1.ResourceRequirements {
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("50m", "150Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "1Gi")[corev1.ResourceMemory]}
	}
	return requirements
}

// registration returns the APIService.
func registration(values Values, labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{
			"service": map[string]any{"name": Name, "namespace": metav1.NamespaceSystem}, "group": "metrics.k8s.io", "version": "v1beta1",
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100), "caBundle": base64.StdEncoding.EncodeToString(values.CABundle),
		},
	}}
	object.SetLabels(labels)
	return object
}

func rights(labels map[string]string) []client.Object {
	account := parts.Account{Namespace: metav1.NamespaceSystem, Name: Name}
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	objects := parts.ClusterRights("system:metrics-server", labels, []rbacv1.PolicyRule{
		parts.Rule("", []string{"pods", "nodes"}, "get", "list", "watch"),
		parts.Rule("", []string{"nodes/metrics"}, "get"),
	}, account)
	return append(objects,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics-server:system:auth-delegator", Labels: labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}, Subjects: subject,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "metrics-server-auth-reader", Labels: labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}, Subjects: subject,
		},
	)
}
