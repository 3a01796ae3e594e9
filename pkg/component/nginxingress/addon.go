package nginxingress

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Values are the inputs of the addon.
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

const (
	name = "addons-nginx-ingress"
	// AddonService is the name of the Service of the addon's controller, in kube-system.
	AddonService = name + "-controller"
)

// Objects returns the objects of the addon, all in the shoot. Its controller handles Ingresses without a class, too.
func Objects(values Values) ([]client.Object, error) {
	addon := settings{
		namespace: metav1.NamespaceSystem, account: name, rights: name, controller: AddonService, backend: name + "-nginx-ingress-k8s-backend",
		backendContainer: "nginx-ingress-nginx-ingress-k8s-backend", class: "nginx", lease: "ingress-controller-leader",
		label:        map[string]string{"app": "nginx-ingress", "release": "addons"},
		labels:       map[string]string{constants.LabelGardenRole: constants.RoleOptionalAddon, "origin": "gardener"},
		nodeSelector: map[string]string{constants.LabelWorkerPoolSystemComponents: "true"}, priorityClass: constants.PriorityClassShootSystem600, replicas: 1,
		memory: "100Mi", maxMemory: "4Gi", autoscaler: values.VerticalPodAutoscaler,
		flags: []string{"--watch-ingress-without-class=true"}, environment: parts.ServerHost(values.ServerHost),
		image: values.Image, backendImage: values.ImageBackend, config: values.Config.Config,
	}
	objects, err := addon.objects()
	if err != nil {
		return nil, err
	}
	service := addon.service()
	service.Spec.Type, service.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, values.Config.LoadBalancerSourceRanges
	service.Spec.ExternalTrafficPolicy = ptr.Deref(values.Config.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	return append(objects, service, addon.policy()), nil
}

// policy allows all traffic of the addon, because everybody may use it and it forwards requests to all Pods.
func (s settings) policy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: "gardener.cloud--allow-to-from-nginx", Labels: maps.Clone(s.labels),
			Annotations: map[string]string{constants.AnnotationGardenerDescription: "Allows all traffic of the ingress controller and its backend."},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: maps.Clone(s.label)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
		},
	}
}
