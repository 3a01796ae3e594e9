// Package nginxingress contains an ingress controller on the basis of nginx, an addon of shoots for evaluation. Names and settings are the
// same as in Gardener.
package nginxingress

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// The names of the images.
const (
	Image        = "nginx-ingress-controller"
	ImageBackend = "ingress-default-backend"
)

const (
	name       = "addons-nginx-ingress"
	controller = name + "-controller"
	backend    = name + "-nginx-ingress-k8s-backend"
	class      = "nginx"
	lease      = "ingress-controller-leader"
	portHealth = 10254
	portServer = 8080
)

// Values are the inputs of the component.
type Values struct {
	// Image and ImageBackend are the references of the images named by the constants.
	Image, ImageBackend string
	// Config is spec.addons.nginxIngress of the Shoot, with defaults.
	Config corev1beta1.NginxIngress
	// ServerHost is the host name of the API server outside of the cluster.
	ServerHost string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

// label identifies the objects.
var label = map[string]string{"app": "nginx-ingress", "release": "addons"}

func addon(labels map[string]string) map[string]string {
	return parts.Merge(labels, map[string]string{constants.LabelGardenRole: constants.RoleOptionalAddon, "origin": "gardener"})
}

func component(name string) map[string]string {
	return parts.Merge(label, map[string]string{"component": name})
}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: controller, Labels: addon(component("controller"))},
		Data:       parts.Merge(map[string]string{"server-name-hash-bucket-size": "256", "use-proxy-protocol": "false", "worker-processes": "2"}, values.Config.Config),
	}
	ingress, err := controllerDeployment(values)
	if err != nil {
		return nil, err
	}
	other, err := backendDeployment(values)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		parts.ServiceAccount(metav1.NamespaceSystem, name, addon(label)), config,
		&networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: class, Labels: addon(component("controller"))},
			Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/" + class},
		},
		ingress, balancer(values), other, backendService(), policy(),
	}
	objects = append(objects, rights()...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(ingress, "100Mi"))
	}
	return objects, nil
}

func controllerDeployment(values Values) (*appsv1.Deployment, error) {
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("100m", "100Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "4Gi")[corev1.ResourceMemory]}
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	const namespace = metav1.NamespaceSystem + "/"
	deployment, err := parts.Workload{
		Namespace: metav1.NamespaceSystem, Name: controller, Selector: component("controller"), Labels: addon(nil), PodLabels: addon(nil), Replicas: 1,
		PriorityClass:  constants.PriorityClassShootSystem600,
		ServiceAccount: name, MountsToken: true,
		Container: corev1.Container{
			Name: "nginx-ingress-controller", Image: values.Image, Args: []string{
				"/nginx-ingress-controller", "--default-backend-service=" + namespace + backend, "--enable-ssl-passthrough=true",
				"--publish-service=" + namespace + controller, "--election-id=" + lease, "--update-status=true",
				"--annotations-prefix=nginx.ingress.kubernetes.io", "--configmap=" + namespace + controller, "--ingress-class=" + class,
				"--controller-class=k8s.io/" + class, "--enable-annotation-validation=true", "--watch-ingress-without-class=true",
			},
			Env: append([]corev1.EnvVar{field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")}, parts.ServerHost(values.ServerHost)...),
			Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}, {Name: "https", ContainerPort: 443, Protocol: corev1.ProtocolTCP},
			},
			LivenessProbe:  parts.HTTPProbe("/healthz", portHealth, corev1.URISchemeHTTP),
			ReadinessProbe: parts.HTTPProbe("/healthz", portHealth, corev1.URISchemeHTTP), Resources: requirements,
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	pod := &deployment.Spec.Template.Spec
	// The image runs as this user, writes its configuration below the root directory, and its program has a capability as a file.
	pod.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
	pod.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(true), RunAsUser: ptr.To[int64](101),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE", "SYS_CHROOT"}},
	}
	pod.NodeSelector = map[string]string{constants.LabelWorkerPoolSystemComponents: "true"}
	return deployment, nil
}

// balancer returns the Service of the type LoadBalancer.
func balancer(values Values) *corev1.Service {
	port := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number), Protocol: corev1.ProtocolTCP}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: controller, Labels: addon(component("controller"))},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: component("controller"), Ports: []corev1.ServicePort{port("https", 443), port("http", 80)},
			LoadBalancerSourceRanges: values.Config.LoadBalancerSourceRanges,
			ExternalTrafficPolicy:    ptr.Deref(values.Config.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster),
		},
	}
}

func backendDeployment(values Values) (*appsv1.Deployment, error) {
	deployment, err := parts.Workload{
		Namespace: metav1.NamespaceSystem, Name: backend, Selector: component("nginx-ingress-k8s-backend"), Labels: addon(nil), PodLabels: addon(nil), Replicas: 1,
		PriorityClass: constants.PriorityClassShootSystem600,
		Container: corev1.Container{
			Name: "nginx-ingress-nginx-ingress-k8s-backend", Image: values.ImageBackend,
			Ports:         []corev1.ContainerPort{{ContainerPort: portServer, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: parts.HTTPProbe("/healthy", portServer, corev1.URISchemeHTTP),
			Resources:     corev1.ResourceRequirements{Requests: parts.Requests("20m", "20Mi")},
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.NodeSelector = map[string]string{constants.LabelWorkerPoolSystemComponents: "true"}
	return deployment, nil
}

func backendService() *corev1.Service {
	selector := component("nginx-ingress-k8s-backend")
	service := parts.SystemService(backend, selector, false, parts.TCPPort("", 80, portServer))
	service.Labels = addon(selector)
	return service
}

// policy allows all traffic of the addon, because everybody may use it and it forwards requests to all Pods.
func policy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-to-from-nginx", Labels: addon(nil),
			Annotations: map[string]string{constants.AnnotationGardenerDescription: "Allows all traffic of the ingress controller and its backend."},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: maps.Clone(label)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
		},
	}
}

func rights() []client.Object {
	account, read := parts.Account{Namespace: metav1.NamespaceSystem, Name: name}, []string{"get", "list", "watch"}
	own := parts.Rule("coordination.k8s.io", []string{"leases"}, "get", "update")
	own.ResourceNames = []string{lease}
	objects := parts.ClusterRights(name, addon(label), []rbacv1.PolicyRule{
		parts.Rule("", []string{"configmaps", "endpoints", "namespaces", "nodes", "pods", "secrets", "services"}, read...),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		parts.Rule("networking.k8s.io", []string{"ingresses", "ingressclasses"}, read...),
		parts.Rule("networking.k8s.io", []string{"ingresses/status"}, "update"),
		parts.Rule("discovery.k8s.io", []string{"endpointslices"}, read...),
	}, account)
	return append(objects, parts.Rights(metav1.NamespaceSystem, name, addon(label), []rbacv1.PolicyRule{
		parts.Rule("coordination.k8s.io", []string{"leases"}, "create"), own,
	}, account)...)
}
