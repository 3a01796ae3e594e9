package flow

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// CacheOptions returns the options of a cache for [Emitter.Reader]. The cache holds the parts of ManagedResources and
// of the metadata of the flow's Secrets that plans and emissions need, and the CustomResourceDefinition that
// [ServedSchema] reads. Objects read from such a cache are incomplete and must not be written back.
func CacheOptions(flow string) map[client.Object]cache.ByObject {
	c := &compactor{shared: cachetransform.NewCompactor()}
	return map[client.Object]cache.ByObject{
		&resourcesv1alpha1.ManagedResource{}: {Transform: c.managedResource},
		&corev1.Secret{}:                     {Label: labels.SelectorFromSet(labels.Set{LabelFlow: flow}), Transform: c.secret},
		&apiextensionsv1.CustomResourceDefinition{}: {
			Field: fields.OneTermEqualSelector("metadata.name", managedResources),
		},
	}
}

// compactor reduces objects before a cache stores them.
type compactor struct {
	shared *cachetransform.Compactor
}

// secret keeps only the metadata that identifies the owner of a Secret.
func (c *compactor) secret(obj any) (any, error) {
	secret, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: cachetransform.Meta(secret)}
	kept.Labels = c.shared.Share(cachetransform.KeepKeys(secret.Labels, LabelFlow, LabelOwner))
	kept.Annotations = c.shared.Share(cachetransform.KeepKeys(secret.Annotations, AnnotationOwner))
	return kept, nil
}

// managedResource drops the parts of the status that only the resource-manager reads. The inventory keeps the names of
// the objects. Equal parts of an owner's bundles share memory.
func (c *compactor) managedResource(obj any) (any, error) {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return obj, nil
	}
	status := resourcesv1alpha1.ManagedResourceStatus{ObservedGeneration: mr.Status.ObservedGeneration, Conditions: mr.Status.Conditions}
	for _, entry := range mr.Status.Resources {
		status.Resources = append(status.Resources, resourcesv1alpha1.ObjectReference{
			APIVersion: entry.APIVersion, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name,
		})
	}
	mr.Status = status
	mr.Namespace = cachetransform.Intern(mr.Namespace)
	mr.Labels = c.shared.Share(mr.Labels)
	mr.Annotations = compactAnnotations(mr)
	for i, finalizer := range mr.Finalizers {
		mr.Finalizers[i] = cachetransform.Intern(finalizer)
	}
	return c.shared.Compact(mr)
}

// compactAnnotations returns the annotations of a ManagedResource. The name of a Secret and values that bundles have in
// common are stored once.
func compactAnnotations(mr *resourcesv1alpha1.ManagedResource) map[string]string {
	kept := make(map[string]string, len(mr.Annotations))
	for _, reference := range mr.Spec.SecretRefs {
		if key := references.AnnotationKey(references.KindSecret, reference.Name); mr.Annotations[key] == reference.Name {
			kept[key] = reference.Name
		}
	}
	for key, value := range mr.Annotations {
		switch _, reference := kept[key]; {
		case reference:
		case key == AnnotationOwner, key == AnnotationInputs, key == AnnotationBundles, key == AnnotationVersion, key == AnnotationProgram,
			key == AnnotationGeneration:
			kept[cachetransform.Intern(key)] = cachetransform.Intern(value)
		default:
			kept[cachetransform.Intern(key)] = value
		}
	}
	return kept
}
