// Package bastion deploys bastions: SSH servers in the network of a Shoot's machines, through which users with an
// authorized key connect to machines.
package bastion

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// FlowName distinguishes the ManagedResources of Bastions from others of the extension.
const FlowName = "bastion"

const (
	prefix       = "bastion-"
	labelBastion = "bastion"
	keysFile     = "authorized_keys"
	keysPath     = "/etc/bastion"
	// port is the port on which the server listens as a user without privileges. servicePort is the port of the Service.
	port, servicePort = 2222, 22
	unprivileged      = 65532
	// addressEvery is how often the address of the Service is checked, because Services are not watched.
	addressEvery = 2 * time.Second
)

// Actuator deploys bastions.
type Actuator struct {
	*bundles.Actuator[*extensionsv1alpha1.Bastion]

	uncached  client.Reader
	simulated bool
}

// New returns the actuator. image is the image of this program. If machines are simulated, no load balancer assigns an address.
func New(deployer *bundles.Deployer, uncached client.Reader, image string, machines local.Machines) *Actuator {
	plan := func(_ context.Context, object *extensionsv1alpha1.Bastion, _ *extension.Cluster) (flow.Plan, error) {
		return Plan(object, image, machines)
	}
	return &Actuator{Actuator: bundles.NewActuator(deployer, FlowName, plan), uncached: uncached, simulated: machines.Simulated}
}

// Reconcile deploys a bastion and reports its address.
func (a *Actuator) Reconcile(
	ctx context.Context, object *extensionsv1alpha1.Bastion, cluster *extension.Cluster,
) (extension.Result, error) {
	result, err := a.Actuator.Reconcile(ctx, object, cluster)
	if err != nil || result.Waiting != "" {
		return result, err
	}
	key := client.ObjectKey{Namespace: local.InfrastructureNamespace(object.Namespace), Name: prefix + object.Name}
	service := &corev1.Service{}
	if err := a.uncached.Get(ctx, key, service); err != nil {
		return extension.Result{}, fmt.Errorf("read Service %s: %w", key, err)
	}
	switch addresses := service.Status.LoadBalancer.Ingress; {
	case a.simulated:
		object.Status.Ingress = &corev1.LoadBalancerIngress{Hostname: key.Name + "." + key.Namespace + ".svc"}
	case len(addresses) == 0:
		return extension.Wait(addressEvery, "Service %s has no address yet", key), nil
	default:
		object.Status.Ingress = &corev1.LoadBalancerIngress{IP: addresses[0].IP, Hostname: addresses[0].Hostname}
	}
	return extension.Done(), nil
}

// Restore deploys the bastion again.
func (a *Actuator) Restore(ctx context.Context, object *extensionsv1alpha1.Bastion, cluster *extension.Cluster) (extension.Result, error) {
	return a.Reconcile(ctx, object, cluster)
}

// Plan returns the bundle of a Bastion.
func Plan(object *extensionsv1alpha1.Bastion, image string, machines local.Machines) (flow.Plan, error) {
	keys, err := authorizedKeys(object.Spec.UserData)
	if err != nil {
		return flow.Plan{}, extension.ConfigurationProblem(err)
	}
	if len(object.Spec.Ingress) == 0 {
		return flow.Plan{}, extension.ConfigurationProblem(errors.New("spec.ingress is empty: it must name the addresses that may connect"))
	}
	labels := map[string]string{local.LabelApp: local.AppBastion, labelBastion: object.Name}
	meta := metav1.ObjectMeta{Namespace: local.InfrastructureNamespace(object.Namespace), Name: prefix + object.Name, Labels: labels}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Selector: labels,
		Ports: []corev1.ServicePort{{Name: "ssh", Protocol: corev1.ProtocolTCP, Port: servicePort, TargetPort: intstr.FromInt32(port)}},
	}}
	if machines.Simulated {
		service.Spec.Type = corev1.ServiceTypeClusterIP
	}
	bundle := bundles.Outside(machines.Namespace, object.Namespace, prefix+object.Name)
	bundle.Objects = []client.Object{
		&corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{keysFile: keys}},
		pod(meta, image), service, policy(meta, object.Spec.Ingress),
	}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}, nil
}

// pod returns the Pod of the SSH server.
func pod(meta metav1.ObjectMeta, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](unprivileged), RunAsGroup: ptr.To[int64](unprivileged),
			FSGroup: ptr.To[int64](unprivileged), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "sshd", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
			Args:  []string{"bastion", "--authorized-keys=" + keysPath + "/" + keysFile, fmt.Sprintf("--listen=:%d", port)},
			Ports: []corev1.ContainerPort{{Name: "ssh", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			}},
			VolumeMounts: []corev1.VolumeMount{{Name: "keys", MountPath: keysPath, ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: meta.Name, DefaultMode: ptr.To[int32](0o440)},
		}}},
	}}
}

// policy permits ingress from the declared addresses, and egress to SSH servers of machines and to DNS servers.
func policy(meta metav1.ObjectMeta, ingress []extensionsv1alpha1.BastionIngressPolicy) *networkingv1.NetworkPolicy {
	var from []networkingv1.NetworkPolicyPeer
	for _, one := range ingress {
		from = append(from, networkingv1.NetworkPolicyPeer{IPBlock: one.IPBlock.DeepCopy()})
	}
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	dns := ptr.To(intstr.FromInt32(53))
	return &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: meta.Labels},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: from, Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: ptr.To(intstr.FromInt32(port))}},
		}},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{
				To: []networkingv1.NetworkPolicyPeer{{
					PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{local.LabelApp: local.AppMachine}},
				}},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: ptr.To(intstr.FromInt32(servicePort))}},
			},
			{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: dns}, {Protocol: &tcp, Port: dns}}},
		},
	}}
}
