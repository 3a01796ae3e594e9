// Package shootnamespace contains the namespace of a control plane, the account as which its objects are applied, and
// the Cluster resource through which extensions read the Shoot.
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
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Values are the inputs of the component.
type Values struct {
	// Name of the namespace and of the Cluster: the Shoot's technical ID.
	Name string
	// Shoot, Seed and CloudProfile as read from the garden. Fields that change during operation are dropped: see
	// projected.
	Shoot        *corev1beta1.Shoot
	Seed         *corev1beta1.Seed
	CloudProfile *corev1beta1.CloudProfile
	// Zones in which the Pods may run.
	Zones []string
	// Extensions are the types of the Shoot's Extensions.
	Extensions []string
	// Kubeconfig is the name of the Secret of the config generic-token-kubeconfig; empty if unknown.
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
		constants.LabelGardenRole: constants.RoleShoot, constants.LabelBackupProvider: backup,
		constants.LabelSeedProvider: seed.Spec.Provider.Type, constants.LabelShootProvider: shoot.Spec.Provider.Type,
		"pod-security.kubernetes.io/enforce": "privileged", highavailability.LabelConsider: "true",
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
		resourcesv1alpha1.AnnotationNamespaceAccount: Account,
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
	shoot := &corev1beta1.Shoot{ObjectMeta: values.Shoot.ObjectMeta, Spec: values.Shoot.Spec, Status: stableStatus(values)}
	for _, each := range []struct {
		into   *runtime.RawExtension
		kind   string
		object client.Object
	}{
		{&cluster.Spec.CloudProfile, "CloudProfile", projected(values.CloudProfile.DeepCopy())},
		{&seed, "Seed", projected(&corev1beta1.Seed{ObjectMeta: values.Seed.ObjectMeta, Spec: values.Seed.Spec})},
		{&cluster.Spec.Shoot, "Shoot", projected(shoot)},
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

// projected drops metadata that changes independently of the content. Otherwise each status report of the Shoot would
// change the Cluster, which would trigger another report.
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

// stableStatus returns the part of the status that extensions read and that does not change during operations. It has the last
// operation only if that has failed, so that extensions leave the objects of the Shoot alone until it is retried.
func stableStatus(values Values) corev1beta1.ShootStatus {
	status := values.Shoot.Status
	stable := corev1beta1.ShootStatus{
		TechnicalID: values.Name, UID: values.Shoot.UID, IsHibernated: status.IsHibernated, SeedName: ptr.To(values.Seed.Name),
		ClusterIdentity: status.ClusterIdentity, AdvertisedAddresses: status.AdvertisedAddresses,
		Networking: status.Networking, Credentials: status.Credentials,
	}
	last := status.LastOperation
	if last != nil && last.State == corev1beta1.LastOperationStateFailed && status.ObservedGeneration == values.Shoot.Generation {
		stable.LastOperation, stable.ObservedGeneration = last.DeepCopy(), status.ObservedGeneration
	}
	return stable
}
