// Package shootsystem contains the initial objects of a shoot cluster: PriorityClasses, the permissions of
// administrators and viewers, and information about the cluster.
package shootsystem

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Values are the inputs of the component.
type Values struct {
	// Shoot with defaults, and the name of its Project.
	Shoot   *corev1beta1.Shoot
	Project string
	// ServiceNetworks are the Service ranges in CIDR notation.
	ServiceNetworks []string
	// Extensions are the types of the Shoot's Extensions.
	Extensions []string
}

// priorityClasses are the PriorityClasses of system components.
var priorityClasses = []struct {
	name  string
	value int32
}{
	{constants.PriorityClassShootSystem900, 999999900}, {constants.PriorityClassShootSystem800, 999999800},
	{constants.PriorityClassShootSystem700, 999999700}, {constants.PriorityClassShootSystem600, 999999600},
}

// Objects returns the objects of the component.
func Objects(values Values) []client.Object {
	var objects []client.Object
	for _, class := range priorityClasses {
		objects = append(objects, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.name}, Value: class.value, Description: "For system components of the cluster.",
		})
	}
	return append(append(objects, info(values)), rights()...)
}

// Namespaces returns the namespaces of system components. They are kept when the component is deleted. With nodes, system components are
// spread over the zones of the nodes that may run them.
func Namespaces(nodes bool, zones []string) []client.Object {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: metav1.NamespaceSystem, Labels: map[string]string{constants.LabelGardenPurpose: metav1.NamespaceSystem},
	}}
	if nodes {
		namespace.Labels[highavailability.LabelConsider] = "true"
	}
	if len(zones) > 0 {
		namespace.Annotations = map[string]string{highavailability.AnnotationZones: strings.Join(zones, ",")}
	}
	return []client.Object{namespace}
}

// info returns the ConfigMap that describes the cluster to its users and components.
func info(values Values) *corev1.ConfigMap {
	spec := values.Shoot.Spec
	data := map[string]string{
		"kubernetesVersion": spec.Kubernetes.Version, "projectName": values.Project, "shootName": values.Shoot.Name, "provider": spec.Provider.Type,
		"region": spec.Region, "serviceNetwork": strings.Join(values.ServiceNetworks, ","), "extensions": strings.Join(values.Extensions, ","),
	}
	if spec.DNS != nil {
		data["domain"] = ptr.Deref(spec.DNS.Domain, "")
	}
	if spec.Maintenance != nil && spec.Maintenance.TimeWindow != nil {
		data["maintenanceBegin"], data["maintenanceEnd"] = spec.Maintenance.TimeWindow.Begin, spec.Maintenance.TimeWindow.End
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ShootInfoName}, Data: data}
}

// readable are the resources of the core group that viewers may read: all except Secrets.
var readable = []string{
	"configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "pods/log",
	"replicationcontrollers", "resourcequotas", "serviceaccounts", "services",
}

// otherGroups are the other API groups of Kubernetes that viewers may read.
var otherGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
}

// rights returns the permissions of the groups in kubeconfigs that the garden's API server issues.
func rights() []client.Object {
	objects := []client.Object{&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: constants.ClusterRoleReadOnly},
		Rules: []rbacv1.PolicyRule{
			parts.Rule("", readable, "get", "list", "watch"),
			{APIGroups: otherGroups, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
			{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		},
	}}
	for _, each := range []struct{ name, role, group string }{
		{"gardener.cloud:system:admins", "cluster-admin", constants.ShootSystemAdminsGroup},
		{"gardener.cloud:project:admins", "cluster-admin", constants.ShootProjectAdminsGroup},
		{"gardener.cloud:system:viewers", constants.ClusterRoleReadOnly, constants.ShootSystemViewersGroup},
		{"gardener.cloud:project:viewers", constants.ClusterRoleReadOnly, constants.ShootProjectViewersGroup},
	} {
		group := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: each.group}
		objects = append(objects, bind(each.name, each.role, group))
	}
	return objects
}

func bind(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects,
	}
}
