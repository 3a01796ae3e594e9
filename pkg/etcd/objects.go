package etcd

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// meta returns the metadata of an object of the Etcd. Other controllers, such as autoscalers, find the Etcd by the
// owner reference.
func (in Inputs) meta(component, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Etcd.Namespace, Name: name, Labels: labelsOf(in.Etcd.Name, component, name), OwnerReferences: ownersOf(in.Etcd),
	}
}

// ownersOf returns an owner reference to the Etcd, none if it is not stored in an API server.
func ownersOf(etcd *druidv1alpha1.Etcd) []metav1.OwnerReference {
	if etcd.UID == "" {
		return nil
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(etcd, druidv1alpha1.SchemeGroupVersion.WithKind("Etcd"))}
}

// access returns the ServiceAccount of members and its permissions to read and write their Leases.
func (in Inputs) access() []client.Object {
	name, role := in.Etcd.Name, roleName(in.Etcd.Name)
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: in.meta(componentServiceAccount, name), AutomountServiceAccountToken: ptr.To(false)},
		&rbacv1.Role{
			ObjectMeta: in.meta(componentRole, role),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				Verbs: []string{"get", "list", "patch", "update", "watch"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: in.meta(componentRoleBinding, role),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: in.Etcd.Namespace}},
		},
	}
}

// selector selects the Pods of the Etcd.
func (in Inputs) selector() map[string]string {
	return map[string]string{lease.LabelPartOf: in.Etcd.Name, lease.LabelComponent: componentStatefulSet}
}

// clientService returns the Service with which clients reach ready members.
func (in Inputs) clientService() *corev1.Service {
	service := &corev1.Service{ObjectMeta: in.meta(componentClientService, ClientServiceName(in.Etcd.Name)), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: in.selector(),
		Ports: []corev1.ServicePort{port("client", in.clientPort()), port("server", in.peerPort()), port("backuprestore", in.backupPort())},
	}}
	if settings := in.Etcd.Spec.ETCD.ClientService; settings != nil {
		// The operator's own labels take precedence, because it selects its objects by them.
		all := maps.Clone(settings.Labels)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, service.Labels)
		service.Labels, service.Annotations = all, maps.Clone(settings.Annotations)
		service.Spec.TrafficDistribution = settings.TrafficDistribution
	}
	return service
}

// peerService returns the Service that gives members their DNS names. Members need them before they are ready.
func (in Inputs) peerService() *corev1.Service {
	return &corev1.Service{ObjectMeta: in.meta(componentPeerService, PeerServiceName(in.Etcd.Name)), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: in.selector(),
		Ports: []corev1.ServicePort{port("peer", in.peerPort())},
	}}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(number)}
}

// budget returns the PodDisruptionBudget that protects the quorum from evictions.
func (in Inputs) budget() *policyv1.PodDisruptionBudget {
	var available int32
	if in.Etcd.Spec.Replicas > 1 {
		available = quorum(in.Etcd.Spec.Replicas)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: in.meta(componentBudget, in.Etcd.Name), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(available)), Selector: &metav1.LabelSelector{MatchLabels: in.selector()},
	}}
	if _, found := in.Etcd.Annotations[AnnotationAllowEviction]; found {
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

func (in Inputs) clientPort() int32 { return ptr.Deref(in.Etcd.Spec.ETCD.ClientPort, clientPort) }
func (in Inputs) peerPort() int32   { return ptr.Deref(in.Etcd.Spec.ETCD.ServerPort, peerPort) }
func (in Inputs) statusPort() int32 { return ptr.Deref(in.Etcd.Spec.ETCD.WrapperPort, wrapperPort) }
func (in Inputs) backupPort() int32 { return ptr.Deref(in.Etcd.Spec.Backup.Port, backupPort) }
