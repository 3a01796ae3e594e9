package seeddomains

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

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
		case live.Type != wanted.Type: // it is immutable; the watch of the deleted copy creates it again
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

// copyOf returns the copy of a Secret. Its label marks it, and its annotations name the domain.
func copyOf(namespace string, original corev1.Secret) corev1.Secret {
	made := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: original.Name, Labels: map[string]string{constants.LabelGardenRole: constants.RoleDefaultDomain},
		},
		Type: original.Type, Data: original.Data,
	}
	for _, key := range []string{constants.AnnotationDNSDomain, constants.AnnotationDNSProvider, constants.AnnotationDNSZone} {
		if value, set := original.Annotations[key]; set {
			metav1.SetMetaDataAnnotation(&made.ObjectMeta, key, value)
		}
	}
	return made
}
