package parts

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// ServiceAccount returns a ServiceAccount whose token Kubernetes mounts only into Pods that request it.
func ServiceAccount(namespace, name string, labels map[string]string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)},
		AutomountServiceAccountToken: ptr.To(false),
	}
}

// Account identifies a ServiceAccount that receives permissions.
type Account struct{ Namespace, Name string }

func (a Account) subject() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}
}

// ClusterRights returns a ClusterRole and a ClusterRoleBinding for the accounts, both with the same name.
func ClusterRights(name string, labels map[string]string, rules []rbacv1.PolicyRule, accounts ...Account) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   subjects(accounts),
		},
	}
}

// Rights returns a Role and a RoleBinding for the accounts, both with the same name.
func Rights(namespace, name string, labels map[string]string, rules []rbacv1.PolicyRule, accounts ...Account) []client.Object {
	return []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)}, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   subjects(accounts),
		},
	}
}

func subjects(accounts []Account) []rbacv1.Subject {
	list := make([]rbacv1.Subject, 0, len(accounts))
	for _, account := range accounts {
		list = append(list, account.subject())
	}
	return list
}

// Rule returns a rule for resources of an API group.
func Rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// Everything returns rules that allow all requests.
func Everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}
}

// Configuration returns an immutable ConfigMap with one file, named after its content, so that a change replaces the
// Pods that use it.
func Configuration(namespace, name string, labels map[string]string, file, content string) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)},
		Data:       map[string]string{file: content},
	}
	if err := references.MakeUnique(configMap); err != nil {
		return nil, err
	}
	return configMap, nil
}

// Autoscaler returns a VerticalPodAutoscaler that adapts the requests of the only container of a Deployment, in place
// if possible. minMemory may be empty.
func Autoscaler(deployment *appsv1.Deployment, minMemory string) *unstructured.Unstructured {
	policy := map[string]any{
		"containerName": deployment.Spec.Template.Spec.Containers[0].Name, "controlledValues": "RequestsOnly",
	}
	if minMemory != "" {
		policy["minAllowed"] = map[string]any{"memory": minMemory}
	}
	return NewAutoscaler(deployment.Namespace, deployment.Name, deployment.Name, policy, map[string]any{"containerName": "*", "mode": "Off"})
}

// NewAutoscaler returns a VerticalPodAutoscaler for a Deployment with the given container policies.
func NewAutoscaler(namespace, name, deployment string, policies ...any) *unstructured.Unstructured {
	return AutoscalerOf(namespace, name, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment}, policies...)
}

// AutoscalerOf returns a VerticalPodAutoscaler for a target reference with the given container policies.
func AutoscalerOf(namespace, name string, target map[string]any, policies ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"targetRef":      target,
			"updatePolicy":   map[string]any{"updateMode": "InPlaceOrRecreate"},
			"resourcePolicy": map[string]any{"containerPolicies": policies},
		},
	}}
}

// RecommendOnly makes a VerticalPodAutoscaler recommend requests, but not change them. The error is that of an object of another kind.
func RecommendOnly(autoscaler *unstructured.Unstructured) error {
	return unstructured.SetNestedField(autoscaler.Object, "Off", "spec", "updatePolicy", "updateMode")
}

// PortsAllowed returns the value of an annotation that lists TCP ports of a Service's Pods for the network policy
// controller.
func PortsAllowed(ports ...int32) string {
	list := make([]string, 0, len(ports))
	for _, port := range ports {
		list = append(list, `{"port":`+strconv.Itoa(int(port))+`,"protocol":"TCP"}`)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// Balance gives a Service a load balancer, through which everybody may connect to ports of its Pods.
func Balance(service *corev1.Service, balancer exposure.Balancer, ports ...int32) {
	service.Annotations = Merge(balancer.Annotations, service.Annotations)
	service.Annotations[netpol.AnnotationFromWorld] = PortsAllowed(ports...)
	service.Spec.Type, service.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, balancer.Class
	service.Spec.ExternalTrafficPolicy = balancer.TrafficPolicy
}

// NamespacesAllowed returns the value of the annotation netpol.AnnotationNamespaceSelectors of a Service: Pods of the selected namespaces may connect to
// its Pods. The error is that of a selector that cannot be encoded.
func NamespacesAllowed(selectors ...metav1.LabelSelector) (string, error) {
	text, err := json.Marshal(selectors)
	if err != nil {
		return "", fmt.Errorf("encode the namespaces with clients of a Service: %w", err)
	}
	return string(text), nil
}

// Namespaced selects the namespace with a name.
func Namespaced(name string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// WithRole selects the namespaces with a value of the label gardener.cloud/role.
func WithRole(role string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelGardenRole: role}}
}

// ServiceNames returns the DNS names of a Service in the cluster.
func ServiceNames(namespace, name string) []string {
	inNamespace := fmt.Sprintf("%s.%s", name, namespace)
	return []string{name, inNamespace, inNamespace + ".svc", inNamespace + ".svc.cluster.local"}
}
