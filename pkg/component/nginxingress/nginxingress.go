// Package nginxingress contains an ingress controller on the basis of nginx: the addon of shoots for evaluation, and the one of a seed or of the runtime
// cluster of a garden. Names and settings are the same as in Gardener.
package nginxingress

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// The names of the images.
const (
	Image        = "nginx-ingress-controller"
	ImageBackend = "ingress-default-backend"
)

const (
	componentController = "controller"
	componentBackend    = "nginx-ingress-k8s-backend"
)

const (
	portHealth = 10254
	portServer = 8080
	portHTTP   = 80
	portHTTPS  = 443
)

// settings are what differs between the controllers of shoots and of seeds.
type settings struct {
	namespace string
	// account is the name of the ServiceAccount, rights that of the roles, and controller and backend those of everything else.
	account, rights, controller, backend string
	// backendContainer is the name of the container of the backend.
	backendContainer string
	// class is the name of the IngressClass, lease that of the Lease of the leader.
	class, lease string
	// label identifies the objects. Labels are further ones of all objects, controllerLabels those of the Deployment of the controller, and
	// controllerPods those of its Pods.
	label, labels, controllerLabels, controllerPods map[string]string
	nodeSelector                                    map[string]string
	priorityClass                                   string
	replicas                                        int32
	// memory is requested. maxMemory is the limit without a VerticalPodAutoscaler.
	memory, maxMemory string
	// autoscaler adds a VerticalPodAutoscaler, budget a PodDisruptionBudget.
	autoscaler, budget bool
	// flags are further ones of the controller, environment further variables.
	flags       []string
	environment []corev1.EnvVar
	// image and backendImage are references, config is that of nginx.
	image, backendImage string
	config              map[string]string
}

// component returns the labels that select the Pods of a component.
func (s settings) component(name string) map[string]string {
	return parts.Merge(s.label, map[string]string{"component": name})
}

// labeled returns all labels of an object of a component.
func (s settings) labeled(name string) map[string]string {
	return parts.Merge(s.component(name), s.labels)
}

// objects returns all objects, except the Service of the controller and policies.
func (s settings) objects() ([]client.Object, error) {
	controller, err := s.controllerDeployment()
	if err != nil {
		return nil, err
	}
	backend, err := s.backendDeployment()
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		parts.ServiceAccount(s.namespace, s.account, parts.Merge(s.label, s.labels)),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.controller, Labels: s.labeled(componentController)},
			Data:       parts.Merge(map[string]string{"server-name-hash-bucket-size": "256", "use-proxy-protocol": "false", "worker-processes": "2"}, s.config),
		},
		&networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: s.class, Labels: s.labeled(componentController)},
			Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/" + s.class},
		},
		controller, backend, s.backendService(),
	}
	objects = append(objects, s.roles()...)
	if s.autoscaler {
		objects = append(objects, parts.Autoscaler(controller, "100Mi"))
	}
	if s.budget {
		objects = append(objects, parts.Budget(controller))
	}
	return objects, nil
}

func (s settings) controllerDeployment() (*appsv1.Deployment, error) {
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("100m", s.memory)}
	if !s.autoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", s.maxMemory)[corev1.ResourceMemory]}
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	deployment, err := parts.Workload{
		Namespace: s.namespace, Name: s.controller, Selector: s.component(componentController), Labels: parts.Merge(s.labels, s.controllerLabels),
		PodLabels: parts.Merge(s.labels, s.controllerPods), Replicas: s.replicas,
		PriorityClass:  s.priorityClass,
		ServiceAccount: s.account, MountsToken: true,
		Container: corev1.Container{
			Name: "nginx-ingress-controller", Image: s.image, Args: append([]string{
				"/nginx-ingress-controller", "--default-backend-service=" + s.namespace + "/" + s.backend, "--enable-ssl-passthrough=true",
				"--publish-service=" + s.namespace + "/" + s.controller, "--election-id=" + s.lease, "--update-status=true",
				"--annotations-prefix=nginx.ingress.kubernetes.io", "--configmap=" + s.namespace + "/" + s.controller, "--ingress-class=" + s.class,
				"--controller-class=k8s.io/" + s.class, "--enable-annotation-validation=true",
			}, s.flags...),
			Env: append([]corev1.EnvVar{field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")}, s.environment...),
			Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: portHTTP, Protocol: corev1.ProtocolTCP}, {Name: "https", ContainerPort: portHTTPS, Protocol: corev1.ProtocolTCP},
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
	pod.NodeSelector = s.nodeSelector
	return deployment, nil
}

// service returns the Service of the controller, without a type.
func (s settings) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.controller, Labels: s.labeled(componentController)},
		Spec: corev1.ServiceSpec{
			Selector: s.component(componentController),
			Ports:    []corev1.ServicePort{parts.TCPPort("https", portHTTPS, portHTTPS), parts.TCPPort("http", portHTTP, portHTTP)},
		},
	}
}

func (s settings) backendDeployment() (*appsv1.Deployment, error) {
	deployment, err := parts.Workload{
		Namespace: s.namespace, Name: s.backend, Selector: s.component(componentBackend), Labels: s.labels, PodLabels: s.labels, Replicas: 1,
		PriorityClass: s.priorityClass,
		Container: corev1.Container{
			Name: s.backendContainer, Image: s.backendImage,
			Ports:         []corev1.ContainerPort{{ContainerPort: portServer, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: parts.HTTPProbe("/healthy", portServer, corev1.URISchemeHTTP),
			Resources:     corev1.ResourceRequirements{Requests: parts.Requests("20m", "20Mi")},
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.NodeSelector = s.nodeSelector
	return deployment, nil
}

func (s settings) backendService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.backend, Labels: s.labeled(componentBackend)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: s.component(componentBackend), Ports: []corev1.ServicePort{parts.TCPPort("", portHTTP, portServer)},
		},
	}
}

// roles returns the rights of the controller. It reads Secrets of all namespaces, because Ingresses of all namespaces name their certificates.
func (s settings) roles() []client.Object {
	account, read, labels := parts.Account{Namespace: s.namespace, Name: s.account}, []string{"get", "list", "watch"}, parts.Merge(s.label, s.labels)
	own := parts.Rule("coordination.k8s.io", []string{"leases"}, "get", "update")
	own.ResourceNames = []string{s.lease}
	objects := parts.ClusterRights(s.rights, labels, []rbacv1.PolicyRule{
		parts.Rule("", []string{"configmaps", "endpoints", "namespaces", "nodes", "pods", "secrets", "services"}, read...),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		parts.Rule("networking.k8s.io", []string{"ingresses", "ingressclasses"}, read...),
		parts.Rule("networking.k8s.io", []string{"ingresses/status"}, "update"),
		parts.Rule("discovery.k8s.io", []string{"endpointslices"}, read...),
	}, account)
	return append(objects, parts.Rights(s.namespace, s.rights, labels, []rbacv1.PolicyRule{
		parts.Rule("coordination.k8s.io", []string{"leases"}, "create"), own,
	}, account)...)
}
