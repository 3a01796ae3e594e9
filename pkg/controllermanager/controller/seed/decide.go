package seed

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// notCopied are the roles of Secrets that are not copied: those of Shoots in namespace garden, and those for extensions, to which
// gardenlets get access by name.
var notCopied = []string{
	constants.RoleCACluster, constants.RoleCAKubelet, constants.RoleCAClient, constants.RoleKubeconfig, constants.RoleSSHKeyPair, constants.RoleMonitoring,
	constants.RoleHelmPullSecret, constants.RoleOCICABundle, constants.RoleResourceReference,
}

// copied selects the Secrets with a role that are copied.
func copied() labels.Selector {
	exists, err := labels.NewRequirement(constants.LabelGardenRole, selection.Exists, nil)
	other, failed := labels.NewRequirement(constants.LabelGardenRole, selection.NotIn, notCopied)
	if err != nil || failed != nil {
		return labels.Nothing() // unreachable: the roles are constants
	}
	return labels.NewSelector().Add(*exists, *other)
}

// ofSeed reports whether a namespace has the name of a namespace of a Seed.
func ofSeed(namespace string) bool {
	return strings.HasPrefix(namespace, constants.PrefixSeedNamespace)
}

// namespaceOf returns the namespace of a Seed.
func namespaceOf(seed *corev1beta1.Seed) *corev1.Namespace {
	owner := metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))
	owner.BlockOwnerDeletion = nil // it would need a right to the finalizers of the Seed
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.PrefixSeedNamespace + seed.Name, Labels: map[string]string{constants.LabelGardenRole: constants.RoleSeed},
		OwnerReferences: []metav1.OwnerReference{*owner},
	}}
}

// adopt completes the labels and the owner of an existing namespace for a Seed, and reports whether it changed it. It fails if the
// namespace is neither controlled by the Seed nor was labelled as a namespace of a Seed by an operator.
func adopt(namespace *metav1.PartialObjectMetadata, seed *corev1beta1.Seed) (changed bool, err error) {
	if !metav1.IsControlledBy(namespace, seed) {
		if metav1.GetControllerOf(namespace) != nil || namespace.Labels[constants.LabelGardenRole] != constants.RoleSeed {
			return false, fmt.Errorf("namespace %s exists and does not belong to Seed %s: delete it, or, if it has no other owner, label it with %s=%s",
				namespace.Name, seed.Name, constants.LabelGardenRole, constants.RoleSeed)
		}
		namespace.OwnerReferences = append(namespace.OwnerReferences, namespaceOf(seed).OwnerReferences...)
		changed = true
	}
	if namespace.Labels[constants.LabelGardenRole] != constants.RoleSeed {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, constants.LabelGardenRole, constants.RoleSeed)
		changed = true
	}
	return changed, nil
}

// changes are the writes that make the copies in a namespace equal to their originals.
type changes struct{ create, update, remove []corev1.Secret }

// decide compares the copies in a namespace with their originals.
func decide(namespace string, originals, copies []corev1.Secret) changes {
	present := map[string]corev1.Secret{}
	for _, each := range copies {
		present[each.Name] = each
	}
	var needed changes
	for _, original := range originals {
		if original.DeletionTimestamp != nil {
			continue
		}
		wanted := copyOf(namespace, original)
		live, exists := present[wanted.Name]
		delete(present, wanted.Name)
		switch {
		case !exists:
			needed.create = append(needed.create, wanted)
		case live.Type != wanted.Type || ptr.Deref(live.Immutable, false): // neither can change; the watch of the deleted copy creates it again
			needed.remove = append(needed.remove, live)
		case !equality.Semantic.DeepEqual(live.Data, wanted.Data) || !maps.Equal(live.Labels, wanted.Labels) || !maps.Equal(live.Annotations, wanted.Annotations):
			wanted.ResourceVersion = live.ResourceVersion
			needed.update = append(needed.update, wanted)
		}
	}
	for _, each := range copies {
		if _, unwanted := present[each.Name]; unwanted && each.DeletionTimestamp == nil {
			needed.remove = append(needed.remove, each)
		}
	}
	return needed
}

// copyOf returns the copy of a Secret, without the annotation of "kubectl apply", which would make it the owner of the copy.
func copyOf(namespace string, original corev1.Secret) corev1.Secret {
	made := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: original.Name, Labels: maps.Clone(original.Labels), Annotations: maps.Clone(original.Annotations),
		},
		Type: original.Type, Data: original.Data,
	}
	delete(made.Annotations, corev1.LastAppliedConfigAnnotation)
	return made
}

// reduce removes the contents of Secrets that are neither originals nor copies.
func reduce(object any) (any, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	secret.ManagedFields = nil
	delete(secret.Annotations, corev1.LastAppliedConfigAnnotation)
	if secret.Namespace != constants.GardenNamespace && !ofSeed(secret.Namespace) {
		secret.Data = nil
	}
	return secret, nil
}
