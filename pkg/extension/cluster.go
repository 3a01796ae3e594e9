package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// annotationGenericKubeconfig on a Cluster is the name of the Secret with the kubeconfig that Pods of the control plane mount.
const annotationGenericKubeconfig = "generic-token-kubeconfig.secret.gardener.cloud/name"

// Cluster contains the Shoot of an extension object, with its Seed and CloudProfile. It must not be modified.
type Cluster struct {
	// Name is the technical ID of the Shoot, which is also the name of its namespace in the seed.
	Name string
	// CloudProfile contains the merged spec if the Shoot uses a NamespacedCloudProfile.
	CloudProfile *corev1beta1.CloudProfile
	// Seed is nil for a self-hosted Shoot.
	Seed *corev1beta1.Seed
	// Shoot includes its status.
	Shoot *corev1beta1.Shoot
	// GenericKubeconfigName is the name of the Secret with the kubeconfig that Pods in the Shoot's namespace mount. It is
	// empty if it does not exist.
	GenericKubeconfigName string
}

// DecodeCluster decodes a Cluster. It ignores unknown fields.
func DecodeCluster(cluster *extensionsv1alpha1.Cluster) (*Cluster, error) {
	decoded := &Cluster{
		Name: cluster.Name, CloudProfile: &corev1beta1.CloudProfile{}, Shoot: &corev1beta1.Shoot{},
		GenericKubeconfigName: cluster.Annotations[annotationGenericKubeconfig],
	}
	if err := decodePart(&cluster.Spec.CloudProfile, "CloudProfile", decoded.CloudProfile); err != nil {
		return nil, fmt.Errorf("spec.cloudProfile of Cluster %s: %w", cluster.Name, err)
	}
	if cluster.Spec.Seed != nil && len(cluster.Spec.Seed.Raw) > 0 && string(cluster.Spec.Seed.Raw) != "null" {
		decoded.Seed = &corev1beta1.Seed{}
		if err := decodePart(cluster.Spec.Seed, "Seed", decoded.Seed); err != nil {
			return nil, fmt.Errorf("spec.seed of Cluster %s: %w", cluster.Name, err)
		}
	}
	if err := decodePart(&cluster.Spec.Shoot, "Shoot", decoded.Shoot); err != nil {
		return nil, fmt.Errorf("spec.shoot of Cluster %s: %w", cluster.Name, err)
	}
	return decoded, nil
}

// decodePart decodes one of the objects in a Cluster and checks its kind.
func decodePart(raw *runtime.RawExtension, kind string, into runtime.Object) error {
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return fmt.Errorf("decode a %s: %w", kind, err)
	}
	want := corev1beta1.SchemeGroupVersion.WithKind(kind)
	if found := into.GetObjectKind().GroupVersionKind(); found != want && found != (schema.GroupVersionKind{}) {
		return fmt.Errorf("is a %s, expected a %s", found, want)
	}
	return nil
}

// GetCluster reads and decodes a Cluster. If it does not exist, the error wraps that of the API server.
func GetCluster(ctx context.Context, reader client.Reader, name string) (*Cluster, error) {
	var cluster extensionsv1alpha1.Cluster
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return nil, fmt.Errorf("read Cluster %s: %w", name, err)
	}
	return DecodeCluster(&cluster)
}

// ClusterOf reads the Cluster to which an object belongs, or returns nil if it does not belong to one. It also returns
// nil if the Cluster does not exist and the object is being deleted, or is a BackupEntry, which may exist longer than its
// Shoot.
func ClusterOf(ctx context.Context, reader client.Reader, object extensionsv1alpha1.Object) (*Cluster, error) {
	name := clusterName(object)
	if name == "" {
		return nil, nil
	}
	cluster, err := GetCluster(ctx, reader, name)
	if _, backup := object.(*extensionsv1alpha1.BackupEntry); apierrors.IsNotFound(err) && (backup || object.GetDeletionTimestamp() != nil) {
		return nil, nil
	}
	return cluster, err
}

// Hibernated reports whether the Shoot is hibernated or being hibernated, so that none of its components must run.
func (c *Cluster) Hibernated() bool {
	hibernation := c.Shoot.Spec.Hibernation
	return hibernation != nil && hibernation.Enabled != nil && *hibernation.Enabled
}

// Failed reports whether the operation of the Shoot has failed permanently. It is retried after a change of its
// specification or on request.
func (c *Cluster) Failed() bool {
	last := c.Shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateFailed && c.Shoot.Status.ObservedGeneration == c.Shoot.Generation
}

// Ignored reports whether the Shoot is annotated to be ignored.
func (c *Cluster) Ignored() bool {
	return resourcesv1alpha1.Truthy(c.Shoot.Annotations[constants.AnnotationShootIgnore])
}

// ForceDeletion reports whether the Shoot is being deleted and the deletion is forced.
func (c *Cluster) ForceDeletion() bool {
	return c.Shoot.DeletionTimestamp != nil && resourcesv1alpha1.Truthy(c.Shoot.Annotations[constants.AnnotationConfirmationForceDeletion])
}

// clusterName returns the name of the Cluster to which an object belongs, or an empty string.
func clusterName(object extensionsv1alpha1.Object) string {
	if class := object.GetExtensionSpec().Class; class != nil && *class != extensionsv1alpha1.ExtensionClassShoot {
		return ""
	}
	switch object.(type) {
	case *extensionsv1alpha1.BackupBucket:
		return ""
	case *extensionsv1alpha1.BackupEntry:
		return TechnicalID(object.GetName())
	}
	if object.GetNamespace() == constants.GardenNamespace {
		return ""
	}
	return object.GetNamespace()
}

// prefixSource is the prefix of the names of BackupEntries from which backups are copied.
const prefixSource = "source-"

// TechnicalID returns the technical ID of the Shoot whose backups a BackupEntry with the given name contains.
func TechnicalID(backupEntry string) string {
	name := strings.TrimPrefix(backupEntry, prefixSource)
	if at := strings.LastIndex(name, "--"); at > 0 {
		return name[:at]
	}
	return name
}
