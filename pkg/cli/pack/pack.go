// Package pack converts manifests to Secrets that are named after their content, and to the ManagedResource that
// references them.
// Apart from reading files, it accesses no other system.
package pack

import (
	"errors"
	"fmt"
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// Options specify the ManagedResource and its Secrets.
type Options struct {
	// Namespace and Name are the name of the ManagedResource. The names of the Secrets begin with it.
	Namespace, Name string
	// Labels of the ManagedResource.
	Labels map[string]string
	// Annotations of the ManagedResource, in addition to those that reference its Secrets.
	Annotations map[string]string
	// Spec is the specification of the ManagedResource, without the references to Secrets.
	Spec resourcesv1alpha1.ManagedResourceSpec
	// Plain disables the compression of the manifests, so that they are readable.
	Plain bool
}

// Parcel is a ManagedResource with its Secrets.
type Parcel struct {
	ManagedResource *resourcesv1alpha1.ManagedResource
	Secrets         []*corev1.Secret
	// Objects is the number of objects in the manifests, Bytes is their size, and Packed is their size in the Secrets.
	Objects, Bytes, Packed int
}

// Pack returns a parcel of objects. Equal objects in the same order result in equal parcels. The error names the
// object that is too
// large, or describes the problem with a name.
func Pack(documents []manifest.Document, options Options) (*Parcel, error) {
	if problems := validation.IsDNS1123Subdomain(options.Name); len(problems) > 0 {
		return nil, fmt.Errorf("%q is not a valid name for a ManagedResource: %s", options.Name, problems[0])
	}
	if len(documents) == 0 {
		return nil, errors.New("the manifests contain no objects")
	}
	texts := make([]manifestsecret.Document, 0, len(documents))
	parcel := &Parcel{Objects: len(documents)}
	for _, document := range documents {
		text, err := yaml.Marshal(document.Object)
		if err != nil {
			return nil, fmt.Errorf("write the object %s: %w", document.Source, err)
		}
		texts = append(texts, manifestsecret.Document{Name: document.Source, Text: text})
		parcel.Bytes += len(text)
	}
	secrets, err := manifestsecret.Secrets(texts, manifestsecret.Options{
		Namespace: options.Namespace, Name: options.Name, CompressFrom: compressFrom(options.Plain),
		MaxBytes: manifest.DefaultLimits().Bytes, MaxDocuments: manifest.DefaultLimits().Documents,
	})
	if err != nil {
		return nil, err
	}
	parcel.Secrets = secrets
	for _, secret := range secrets {
		for _, value := range secret.Data {
			parcel.Packed += len(value)
		}
	}
	parcel.ManagedResource = managedResource(parcel.Secrets, options)
	return parcel, nil
}

// compressFrom returns the size in bytes from which manifests are compressed: 0 for all, or the maximum for none.
func compressFrom(plain bool) int {
	if plain {
		return math.MaxInt
	}
	return 0
}

func managedResource(secrets []*corev1.Secret, options Options) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: options.Namespace, Name: options.Name, Labels: options.Labels, Annotations: map[string]string{},
		},
		Spec: *options.Spec.DeepCopy(),
	}
	maps.Copy(mr.Annotations, options.Annotations)
	mr.Spec.SecretRefs = nil
	for _, secret := range secrets {
		mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, resourcesv1alpha1.LocalObjectReference{Name: secret.Name})
		// The garbage collector keeps the Secrets that these annotations reference.
		mr.Annotations[references.AnnotationKey(references.KindSecret, secret.Name)] = secret.Name
	}
	return mr
}

// SecretNames returns the names of the Secrets of a ManagedResource.
func SecretNames(mr *resourcesv1alpha1.ManagedResource) []string {
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, reference := range mr.Spec.SecretRefs {
		names = append(names, reference.Name)
	}
	return names
}

// Describe summarizes a parcel.
func (p *Parcel) Describe() string {
	text := fmt.Sprintf("%s, %d bytes", screen.Count(p.Objects, "object"), p.Bytes)
	if p.Packed < p.Bytes {
		text += fmt.Sprintf(", compressed to %d", p.Packed)
	}
	return text + ", in " + screen.Count(len(p.Secrets), "Secret")
}
