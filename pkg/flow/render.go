package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// Render returns the Secrets and the ManagedResource that are emitted for a bundle. It needs no cluster.
func Render(owner Owner, bundle Bundle, scheme *runtime.Scheme) ([]*corev1.Secret, *resourcesv1alpha1.ManagedResource, error) {
	r, err := compile(bundle, scheme)
	if err != nil {
		return nil, nil, err
	}
	return r.render(owner, emission{})
}

// Rendered is a bundle in the form in which it is emitted.
type Rendered struct {
	Bundle          Bundle
	Secrets         []*corev1.Secret
	ManagedResource *resourcesv1alpha1.ManagedResource
}

// Contents returns the objects in the Secrets of the bundle.
func (r Rendered) Contents() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, secret := range r.Secrets {
		objects, err := manifestsecret.Read(secret, maxBytes)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// RenderPlan returns the bundles that are emitted for a plan if nothing exists yet, in write order, and the bundles
// that the plan holds, with the reasons. It needs no cluster. An owner without a UID is allowed. Its objects then lack
// the owner label, and the flow does not recognize them as its own.
func RenderPlan(owner Owner, plan Plan, rules Rules) ([]Rendered, map[Key]string, error) {
	if err := plan.Validate(); err != nil {
		return nil, nil, fmt.Errorf("the plan of %s %s is inconsistent: %w", owner.Flow, owner, err)
	}
	ordered, err := writeOrder(plan.Bundles)
	if err != nil {
		return nil, nil, err
	}
	held := plan.held()
	first := emission{}.next(plan, rules.Version)
	var all []Rendered
	for _, bundle := range ordered {
		if _, waits := held[bundle.Key]; waits {
			continue
		}
		r, err := compile(bundle, rules.Scheme)
		if err != nil {
			return nil, nil, err
		}
		secrets, mr, err := r.render(owner, first)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, Rendered{bundle, secrets, mr})
	}
	return all, held, nil
}

// render returns the Secrets and the ManagedResource, with the annotations that the flow reads later.
func (r *revision) render(owner Owner, by emission) ([]*corev1.Secret, *resourcesv1alpha1.ManagedResource, error) {
	secrets, err := r.secrets(owner)
	if err != nil {
		return nil, nil, err
	}
	bundle := r.bundle
	mr := &resourcesv1alpha1.ManagedResource{Spec: *bundle.Spec.DeepCopy()}
	mr.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	mr.Namespace, mr.Name = bundle.Namespace, bundle.Name
	mr.Labels = map[string]string{}
	maps.Copy(mr.Labels, bundle.Labels)
	maps.Copy(mr.Labels, owner.marks())
	mr.Spec.SecretRefs = refs(secrets)
	if err := references.InjectAnnotations(mr); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", bundle, err)
	}
	annotations := map[string]string{
		AnnotationOwner:      owner.String(),
		AnnotationDigest:     r.content + "." + digestOfNames(mr.Spec.SecretRefs),
		AnnotationInputs:     by.inputs(),
		AnnotationBundles:    by.bundles.String(),
		AnnotationVersion:    programOf(by.version),
		AnnotationGeneration: by.recordedGeneration(),
		AnnotationProgram:    strings.TrimPrefix(strings.TrimPrefix(by.version, programOf(by.version)), programEnd),
	}
	if annotations[AnnotationDeleteAfter], err = encodeIf(bundle.DeleteAfter != nil, bundle.DeleteAfter); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", bundle, err)
	}
	if annotations[AnnotationChoices], err = encodeIf(len(bundle.Choices) > 0, bundle.Choices); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", bundle, err)
	}
	maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })
	maps.Copy(mr.Annotations, annotations)
	return secrets, mr, nil
}

func encodeIf(set bool, value any) (string, error) {
	if !set {
		return "", nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

func refs(secrets []*corev1.Secret) []resourcesv1alpha1.LocalObjectReference {
	names := make([]resourcesv1alpha1.LocalObjectReference, 0, len(secrets))
	for _, secret := range secrets {
		names = append(names, resourcesv1alpha1.LocalObjectReference{Name: secret.Name})
	}
	return names
}
