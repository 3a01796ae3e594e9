// Package vpnshoot contains the agents of the tunnel through which the API server of a shoot reaches its nodes, Pods and Services. They run in the
// shoot and connect to the servers of the package vpnseedserver. Names and labels are the same as in Gardener.
package vpnshoot

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Name is the name of the Deployment.
const Name = "vpn-shoot"

const (
	port      = 8080
	path      = "/srv/secrets/vpn-client"
	labelType = "type"
	tunnel    = "tunnel"
	// terminationSeconds is how long a Pod may take to end. Its connections may go on for 20 seconds.
	terminationSeconds = 30
)

// Values are the inputs of the component.
type Values struct {
	// Image is the reference of the image that the servers have, too.
	Image string
	// Servers are the hosts and ports at which the servers are reached, by the names in their certificates.
	Servers map[string]string
	// CABundle is the bundle of ca-vpn in PEM format, Certificate the data of the Secret with the certificate of agents.
	CABundle    string
	Certificate map[string][]byte
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The shoot must define the kind. It only recommends if RecommendOnly is set.
	VerticalPodAutoscaler, RecommendOnly bool
}

// selector selects the Pods.
var selector = map[string]string{"app": Name, labelType: tunnel}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	credentials, err := parts.SecretFiles(metav1.NamespaceSystem, Name+"-client", parts.SystemComponent(selector), map[string][]byte{
		"ca.crt": []byte(values.CABundle), "tls.crt": values.Certificate["tls.crt"], "tls.key": values.Certificate["tls.key"],
	})
	if err != nil {
		return nil, err
	}
	deployment, err := deployment(values, credentials.Name)
	if err != nil {
		return nil, err
	}
	objects := append([]client.Object{credentials, deployment, parts.SystemBudget(deployment)}, policies()...)
	if values.VerticalPodAutoscaler {
		autoscaler := parts.Autoscaler(deployment, "")
		if values.RecommendOnly {
			if err := parts.RecommendOnly(autoscaler); err != nil {
				return nil, err
			}
		}
		objects = append(objects, autoscaler)
	}
	return objects, nil
}

// deployment returns two agents on different nodes, so that the tunnel is there while a node is replaced.
func deployment(values Values, credentials string) (*appsv1.Deployment, error) {
	probe := parts.HTTPProbe("/readyz", port, corev1.URISchemeHTTP)
	probe.PeriodSeconds = 5
	deployment, err := parts.Workload{
		Namespace: metav1.NamespaceSystem, Name: Name, Selector: selector,
		Labels:    parts.SystemComponent(map[string]string{highavailability.LabelType: parts.TypeServer}),
		PodLabels: parts.SystemComponent(nil), Replicas: 2, PriorityClass: parts.PriorityClusterCritical, Spread: parts.Spread(selector),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Args: flags(values), Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			ReadinessProbe: probe, LivenessProbe: parts.HTTPProbe("/healthz", port, corev1.URISchemeHTTP),
			Resources:    corev1.ResourceRequirements{Requests: parts.Requests("10m", "32Mi")},
			VolumeMounts: []corev1.VolumeMount{parts.Mount("client", path)},
		},
		Volumes: []corev1.Volume{parts.SecretVolume("client", credentials)},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	spec := &deployment.Spec.Template.Spec
	// The DNS server of the cluster might need the tunnel.
	spec.DNSPolicy, spec.Tolerations = corev1.DNSDefault, parts.CriticalTolerations()
	spec.TerminationGracePeriodSeconds = ptr.To[int64](terminationSeconds)
	return deployment, nil
}

func flags(values Values) []string {
	all := []string{
		"agent", "--health-address=:" + strconv.Itoa(port), "--tls-cert-file=" + path + "/tls.crt", "--tls-private-key-file=" + path + "/tls.key",
		"--ca-file=" + path + "/ca.crt",
	}
	for _, name := range slices.Sorted(maps.Keys(values.Servers)) {
		all = append(all, "--server="+name+"="+values.Servers[name])
	}
	return all
}

// policies returns the NetworkPolicies of agents, and of Pods in kube-system that the API server connects to.
func policies() []client.Object {
	meta := func(name, description string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--" + name, Labels: parts.SystemComponent(nil),
			Annotations: map[string]string{constants.AnnotationGardenerDescription: description},
		}
	}
	agents := metav1.LabelSelector{MatchLabels: maps.Clone(selector)}
	return []client.Object{
		&networkingv1.NetworkPolicy{
			ObjectMeta: meta("allow-vpn", "Allows egress of the agents of the tunnel, which connect to all that the API server connects to."),
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: agents, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
				Egress: []networkingv1.NetworkPolicyEgressRule{{}},
			},
		},
		&networkingv1.NetworkPolicy{
			ObjectMeta: meta("allow-from-seed", "Allows ingress from the API server, through the tunnel. The Pods need the label "+
				constants.LabelNetworkPolicyFromSeed+"="+constants.NetworkPolicyAllowed+"."),
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelNetworkPolicyFromSeed: constants.NetworkPolicyAllowed}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &agents}}}},
			},
		},
	}
}
