// Package gardensystem contains the prerequisites of all other components of a garden: the namespace garden and the PriorityClasses in the
// runtime cluster, and the namespaces of the virtual garden.
package gardensystem

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// labelPodSecurity configures Pod Security admission in Kubernetes.
const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// namespacePublic is the namespace of the virtual garden with what every user may read.
const namespacePublic = "gardener-system-public"

// Namespace returns the namespace of the garden in the runtime cluster, whose components are spread over zones. It must be kept when the
// component is deleted, because the operator is in it.
func Namespace(zones []string) []client.Object {
	return []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleGarden, "role": constants.GardenNamespace, highavailability.LabelConsider: "true", labelPodSecurity: "privileged",
		},
		Annotations: map[string]string{
			highavailability.AnnotationZones: strings.Join(zones, ","), resourcesv1alpha1.AnnotationKeepObject: "true",
		},
	}}}
}

// PriorityClasses returns the PriorityClasses of the garden. The chart of the operator has the highest one.
func PriorityClasses() []client.Object {
	var objects []client.Object
	for _, class := range []struct {
		name  string
		value int32
	}{
		{constants.PriorityClassGardenSystem500, 999999500},
		{constants.PriorityClassGardenSystem400, 999999400},
		{constants.PriorityClassGardenSystem300, 999999300},
		{constants.PriorityClassGardenSystem200, 999999200},
		{constants.PriorityClassGardenSystem100, 999999100},
	} {
		objects = append(objects, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.name}, Value: class.value, Description: "For components of the garden.",
		})
	}
	return objects
}

// roleBootstrapper is the ClusterRole of gardenlets that have no certificate yet.
const roleBootstrapper = "gardener.cloud:system:seed-bootstrapper"

// VirtualRights returns what clients with a bootstrap token may do in the virtual garden: request certificates as gardenlets.
func VirtualRights() []client.Object {
	const group = "certificates.k8s.io"
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: roleBootstrapper},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{group}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"}},
				{APIGroups: []string{group}, Resources: []string{"certificatesigningrequests/seedclient"}, Verbs: []string{"create"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roleBootstrapper},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleBootstrapper},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:bootstrappers"}},
		},
	}
}

// VirtualNamespaces returns the namespaces of the virtual garden. They are kept when the component is deleted, because other objects are in
// them.
func VirtualNamespaces() []client.Object {
	var objects []client.Object
	for _, name := range []string{constants.GardenNamespace, namespacePublic} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": "gardener"},
			Annotations: map[string]string{resourcesv1alpha1.AnnotationKeepObject: "true"},
		}})
	}
	return objects
}
