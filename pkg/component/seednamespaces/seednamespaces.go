// Package seednamespaces contains the namespaces of a seed that other components share.
package seednamespaces

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// labelRole is a label of the namespaces garden and kube-system. Its value is the name of the namespace.
const labelRole = "role"

// labelPodSecurity configures Pod Security admission in Kubernetes.
const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// Values are the inputs of the component.
type Values struct {
	// SeedIsGarden omits the namespace garden: the operator owns it, and an object belongs to one ManagedResource.
	SeedIsGarden bool
	// Zones of the seed across which components in the namespace garden are spread.
	Zones []string
}

// Objects returns the objects of the component. They are kept when the component is deleted, because other objects are
// in these namespaces.
func Objects(values Values) ([]client.Object, error) {
	system := namespace(metav1.NamespaceSystem)
	if values.SeedIsGarden {
		return []client.Object{system}, nil
	}
	garden := namespace(constants.GardenNamespace)
	maps.Copy(garden.Labels, map[string]string{
		constants.LabelGardenRole:      constants.RoleGarden,
		highavailability.LabelConsider: "true",
		labelPodSecurity:               "privileged",
	})
	garden.Annotations[highavailability.AnnotationZones] = strings.Join(values.Zones, ",")
	return []client.Object{garden, system}, nil
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{labelRole: name},
		Annotations: map[string]string{resourcesv1alpha1.AnnotationKeepObject: "true"},
	}}
}
