// Package kubernetesdashboard contains the dashboard of Kubernetes, an addon of shoots for evaluation. Names and settings are the same as
// in Gardener.
package kubernetesdashboard

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// The names of the images.
const (
	Image        = "kubernetes-dashboard"
	ImageScraper = "kubernetes-dashboard-metrics-scraper"
)

// Namespace of the dashboard.
const Namespace = "kubernetes-dashboard"

const (
	name        = "kubernetes-dashboard"
	scraper     = "dashboard-metrics-scraper"
	port        = 8443
	portScraper = 8000
	settings    = "kubernetes-dashboard-settings"
	certs       = "kubernetes-dashboard-certs"
	csrf        = "kubernetes-dashboard-csrf"
	keyHolder   = "kubernetes-dashboard-key-holder"
)

// Values are the inputs of the component.
type Values struct {
	// Image and ImageScraper are the references of the images named by the constants.
	Image, ImageScraper string
	// AuthenticationMode is how users authenticate.
	AuthenticationMode string
	// ServerHost is the host name of the API server outside of the cluster.
	ServerHost string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

var (
	selector        = map[string]string{"k8s-app": name}
	selectorScraper = map[string]string{"k8s-app": scraper}
)

// addon adds the labels of an addon.
func addon(labels map[string]string) map[string]string {
	return parts.Merge(labels, map[string]string{constants.LabelGardenRole: constants.RoleOptionalAddon, "origin": "gardener"})
}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	dashboard, err := dashboard(values)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsScraper(values)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: addon(map[string]string{"gardener.cloud/purpose": name})}},
		parts.ServiceAccount(Namespace, name, addon(selector)),
	}
	for _, secret := range []string{certs, csrf, keyHolder} {
		objects = append(objects, ownedByProgram(secret))
	}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: settings, Labels: addon(selector), Annotations: map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"},
	}})
	objects = append(objects, rights()...)
	objects = append(objects, dashboard, service(name, selector, 443, port), metrics, service(scraper, selectorScraper, portScraper, portScraper))
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(dashboard, ""))
	}
	return objects, nil
}

// ownedByProgram returns a Secret that the program fills. It is created once, and never changed again.
func ownedByProgram(secret string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: secret, Labels: addon(selector), Annotations: map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

func service(name string, selector map[string]string, number, target int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: addon(selector)},
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports:    []corev1.ServicePort{{Port: number, TargetPort: intstr.FromInt32(target), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func dashboard(values Values) (*appsv1.Deployment, error) {
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("50m", "50Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "256Mi")[corev1.ResourceMemory]}
	}
	return parts.Workload{
		Namespace: Namespace, Name: name, Selector: selector, Labels: addon(nil), PodLabels: addon(nil), Replicas: 1,
		PriorityClass: constants.PriorityClassShootSystem600, ServiceAccount: name, MountsToken: true,
		Container: corev1.Container{
			Name: name, Image: values.Image, Args: []string{
				"--auto-generate-certificates", "--authentication-mode=" + values.AuthenticationMode, "--namespace=" + Namespace,
			},
			Env:           parts.ServerHost(values.ServerHost),
			Ports:         []corev1.ContainerPort{{ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: delayed("/", port, corev1.URISchemeHTTPS), Resources: requirements,
			VolumeMounts: []corev1.VolumeMount{{Name: "certs", MountPath: "/certs"}, {Name: "tmp", MountPath: "/tmp"}},
		},
		Volumes: []corev1.Volume{parts.SecretVolume("certs", certs), emptyDirectory("tmp")},
	}.Deployment()
}

func metricsScraper(values Values) (*appsv1.Deployment, error) {
	return parts.Workload{
		Namespace: Namespace, Name: scraper, Selector: selectorScraper, Labels: addon(nil), PodLabels: addon(nil), Replicas: 1,
		PriorityClass: constants.PriorityClassShootSystem600, ServiceAccount: name, MountsToken: true,
		Container: corev1.Container{
			Name: scraper, Image: values.ImageScraper, Env: parts.ServerHost(values.ServerHost),
			Ports:         []corev1.ContainerPort{{ContainerPort: portScraper, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: delayed("/", portScraper, corev1.URISchemeHTTP), VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		},
		Volumes: []corev1.Volume{emptyDirectory("tmp")},
	}.Deployment()
}

func delayed(path string, port int32, scheme corev1.URIScheme) *corev1.Probe {
	probe := parts.HTTPProbe(path, port, scheme)
	probe.InitialDelaySeconds, probe.TimeoutSeconds = 30, 30
	return probe
}

func emptyDirectory(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// rights are the permissions of the dashboard itself. What its users see depends on their own tokens.
func rights() []client.Object {
	account := parts.Account{Namespace: Namespace, Name: name}
	named := func(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
		rule.ResourceNames = names
		return rule
	}
	objects := parts.Rights(Namespace, name, addon(selector), []rbacv1.PolicyRule{
		named(parts.Rule("", []string{"secrets"}, "get", "update", "delete"), keyHolder, certs, csrf),
		named(parts.Rule("", []string{"configmaps"}, "get", "update"), settings),
		named(parts.Rule("", []string{"services"}, "proxy"), "heapster", scraper),
		named(parts.Rule("", []string{"services/proxy"}, "get"), "heapster", "http:heapster:", "https:heapster:", scraper, "http:"+scraper),
	}, account)
	return append(objects, parts.ClusterRights(name, addon(selector), []rbacv1.PolicyRule{
		parts.Rule("metrics.k8s.io", []string{"pods", "nodes"}, "get", "list", "watch"),
	}, account)...)
}
