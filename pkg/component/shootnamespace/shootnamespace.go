// Package shootnamespace has the namespace of a control plane, and the Cluster by which extensions learn of the Shoot.
package shootnamespace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Values are what the objects depend on.
type Values struct {
	// Name of the namespace and of the Cluster: the Shoot's technical ID.
	Name string
	// Shoot, Seed and CloudProfile as the garden has them. What changes while the control plane works is left out: see project.
	Shoot        *corev1beta1.Shoot
	Seed         *corev1beta1.Seed
	CloudProfile *corev1beta1.CloudProfile
	// Zones that the Pods may run in.
	Zones []string
	// Extensions are the types of the Extensions that the Shoot has.
	Extensions []string
	// Kubeconfig is the name of the Secret of the config generic-token-kubeconfig; empty if it is not known yet.
	Kubeconfig string
}

// Namespace returns the namespace.
func Namespace(values Values) *corev1.Namespace {
	shoot, seed := values.Shoot, values.Seed
	backup := seed.Spec.Provider.Type
	if seed.Spec.Backup != nil {
		backup = seed.Spec.Backup.Provider
	}
	labels := map[string]string{
		constants.LabelGardenRole: constants.RoleShoot, constants.LabelSeedProvider: seed.Spec.Provider.Type, constants.LabelShootProvider: shoot.Spec.Provider.Type,
		constants.LabelBackupProvider: backup, "pod-security.kubernetes.io/enforce": "privileged", highavailability.LabelConsider: "true",
	}
	if shoot.Spec.Networking != nil {
		if typ := ptr.Deref(shoot.Spec.Networking.Type, ""); typ != "" {
			labels[constants.LabelNetworkingProvider] = typ
		}
	}
	for _, typ := range values.Extensions {
		labels[constants.LabelPrefixExtension+typ] = "true"
	}
	tolerance := ""
	if plane := shoot.Spec.ControlPlane; plane != nil && plane.HighAvailability != nil {
		tolerance = string(plane.HighAvailability.FailureTolerance.Type)
	}
	annotations := map[string]string{
		constants.AnnotationShootUID: string(shoot.UID), highavailability.AnnotationFailureTolerance: tolerance,
	}
	if len(values.Zones) > 0 {
		zones := slices.Clone(values.Zones)
		slices.Sort(zones)
		annotations[highavailability.AnnotationZones] = strings.Join(zones, ",")
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: values.Name, Labels: labels, Annotations: annotations}}
}

// Cluster returns the Cluster.
func Cluster(values Values) (*extensionsv1alpha1.Cluster, error) {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: values.Name}}
	if values.Kubeconfig != "" {
		cluster.Annotations = map[string]string{constants.AnnotationGenericTokenKubeconfigSecretName: values.Kubeconfig}
	}
	seed := runtime.RawExtension{}
	for _, each := range []struct {
		into   *runtime.RawExtension
		kind   string
		object client.Object
	}{
		{&cluster.Spec.CloudProfile, "CloudProfile", projected(values.CloudProfile.DeepCopy())},
		{&seed, "Seed", projected(&corev1beta1.Seed{ObjectMeta: values.Seed.ObjectMeta, Spec: values.Seed.Spec})},
		{&cluster.Spec.Shoot, "Shoot", projected(&corev1beta1.Shoot{ObjectMeta: values.Shoot.ObjectMeta, Spec: values.Shoot.Spec, Status: lasting(values)})},
	} {
		each.object.GetObjectKind().SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind(each.kind))
		text, err := json.Marshal(each.object)
		if err != nil {
			return nil, fmt.Errorf("encode the %s for Cluster %s: %w", each.kind, values.Name, err)
		}
		each.into.Raw = text
	}
	cluster.Spec.Seed = &seed
	return cluster, nil
}

// projected leaves out of an object's metadata what changes though its content does not: else each report about the Shoot would be a change of
// the Cluster, which is reported on again.
func projected[T client.Object](object T) T {
	labels, annotations := parts.Merge(object.GetLabels()), parts.Merge(object.GetAnnotations())
	delete(labels, constants.LabelShootStatus)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	delete(annotations, constants.AnnotationGardenerOperation)
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	object.SetFinalizers(nil)
	object.SetOwnerReferences(nil)
	return object
}

// lasting is what extensions read of the status, without what changes on the way.
func lasting(values Values) corev1beta1.ShootStatus {
	status := values.Shoot.Status
	return corev1beta1.ShootStatus{
		TechnicalID: values.Name, UID: values.Shoot.UID, IsHibernated: status.IsHibernated, SeedName: ptr.To(values.Seed.Name),
		ClusterIdentity: status.ClusterIdentity, AdvertisedAddresses: status.AdvertisedAddresses, Networking: status.Networking, Credentials: status.Credentials,
	}
}
