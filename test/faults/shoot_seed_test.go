package faults

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	// maxManifests is the maximum size of the manifests in a Secret, in bytes, after decompression.
	maxManifests = 16 << 20
	// tokensValid is the lifetime of the tokens that the fake resource-manager requests.
	tokensValid = 12 * time.Hour
)

// standIn does the work of the resource-managers of the seed and of the Shoot. In the seed it applies only the
// objects that gardenlet reads.
func (s *shootLife) standIn() {
	s.Helper()
	for _, mr := range s.managedResources() {
		switch {
		case mr.DeletionTimestamp != nil:
			s.release(&mr)
		case mr.Status.ObservedGeneration != mr.Generation:
			s.apply(&mr)
		}
	}
}

// managedResources returns the ManagedResources of the Shoot.
func (s *shootLife) managedResources() []resourcesv1alpha1.ManagedResource {
	s.Helper()
	var all []resourcesv1alpha1.ManagedResource
	for _, namespace := range []string{s.namespace, s.technical} {
		var list resourcesv1alpha1.ManagedResourceList
		s.list(s.client, &list, client.InNamespace(namespace))
		all = append(all, list.Items...)
	}
	return all
}

// apply adopts a ManagedResource, applies its objects and reports it as healthy.
func (s *shootLife) apply(mr *resourcesv1alpha1.ManagedResource) {
	s.Helper()
	if !slices.Contains(mr.Finalizers, constants.FinalizerResourceManager) {
		before := client.MergeFromWithOptions(mr.DeepCopy(), client.MergeFromWithOptimisticLock{})
		mr.Finalizers = append(mr.Finalizers, constants.FinalizerResourceManager)
		if err := s.client.Patch(s.always(), mr, before); err != nil {
			s.tolerate(err)
			return
		}
	}
	mr.Status.Resources = nil
	for _, object := range s.manifests(mr) { // the flow deletes bundles without an inventory at once
		mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		})
	}
	for _, object := range s.contents(mr) {
		if object.GetKind() == "Secret" && object.GetLabels()[resourcesv1alpha1.LabelPurpose] == resourcesv1alpha1.PurposeTokenRequestor {
			annotations := object.GetAnnotations()
			annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp] = time.Now().Add(tokensValid).UTC().Format(time.RFC3339)
			object.SetAnnotations(annotations)
		}
		s.tolerate(s.client.Create(s.always(), object))
	}
	mr.Status.ObservedGeneration = mr.Generation
	for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: "True", resourcesv1alpha1.ResourcesProgressing: "False",
	} {
		mr.Status.Conditions = resourcesv1alpha1.SetCondition(mr.Status.Conditions, kind, resourcesv1alpha1.NewStatement(status, "StandIn", ""), time.Now())
	}
	s.tolerate(s.client.Status().Update(s.always(), mr))
}

// contents returns the objects of a ManagedResource that the fake resource-manager applies.
func (s *shootLife) contents(mr *resourcesv1alpha1.ManagedResource) []*unstructured.Unstructured {
	s.Helper()
	if ptr.Deref(mr.Spec.Class, "") == "" {
		return nil // they belong to the cluster of the Shoot
	}
	return slices.DeleteFunc(s.manifests(mr), func(object *unstructured.Unstructured) bool {
		return object.GetAPIVersion() != "v1" || !slices.Contains([]string{"Namespace", "Secret"}, object.GetKind())
	})
}

// manifests returns the objects in the Secrets of a ManagedResource.
func (s *shootLife) manifests(mr *resourcesv1alpha1.ManagedResource) []*unstructured.Unstructured {
	s.Helper()
	var all []*unstructured.Unstructured
	for _, reference := range mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := s.client.Get(s.always(), client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, secret); err != nil {
			s.violate("ManagedResource %s refers to an unreadable Secret: %v", mr.Name, err)
			continue
		}
		objects, err := manifestsecret.Read(secret, maxManifests)
		kit.Must(s, err)
		all = append(all, objects...)
	}
	return all
}

// release deletes the objects of a ManagedResource and removes its finalizer. The deletion of a namespace among
// them has to complete first.
func (s *shootLife) release(mr *resourcesv1alpha1.ManagedResource) {
	s.Helper()
	for _, object := range s.contents(mr) {
		if object.GetKind() == "Namespace" {
			if !s.deleteNamespace() {
				return
			}
			continue
		}
		s.tolerate(s.client.Delete(s.always(), object))
	}
	before := client.MergeFrom(mr.DeepCopy())
	mr.Finalizers = nil
	s.tolerate(s.client.Patch(s.always(), mr, before))
}

// deleteNamespace performs one step of the deletion of the control plane's namespace, as the controllers of the
// seed would: it deletes the contents once no object can be created there any more. It reports whether the
// namespace is deleted.
func (s *shootLife) deleteNamespace() bool {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.technical}}
	if !s.found(s.client, client.ObjectKeyFromObject(namespace), namespace) {
		return true
	}
	if namespace.DeletionTimestamp == nil {
		s.tolerate(s.client.Delete(s.always(), namespace))
		return false
	}
	var left corev1.SecretList
	if s.list(s.client, &left, client.InNamespace(s.technical)); len(left.Items) > 0 {
		s.tolerate(s.client.DeleteAllOf(s.always(), &corev1.Secret{}, client.InNamespace(s.technical)))
		return false
	}
	namespace.Spec.Finalizers = nil
	s.tolerate(s.client.SubResource("finalize").Update(s.always(), namespace))
	return false
}
