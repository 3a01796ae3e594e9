package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// States returns what a ShootState has of the objects of extensions of a kind: those that are not being deleted, and have a state or name objects that it
// needs.
func States(kind string, objects []extensionsv1alpha1.Object) []corev1beta1.ExtensionResourceState {
	var states []corev1beta1.ExtensionResourceState
	for _, object := range objects {
		status := object.GetExtensionStatus()
		empty := status.State == nil || len(status.State.Raw) == 0
		if object.GetDeletionTimestamp() != nil || empty && len(status.Resources) == 0 {
			continue
		}
		entry := corev1beta1.ExtensionResourceState{Kind: kind, Name: ptr.To(object.GetName()), Resources: slices.Clone(status.Resources)}
		if !empty {
			entry.State = status.State.DeepCopy()
		}
		if config, is := object.(*extensionsv1alpha1.OperatingSystemConfig); is {
			entry.Purpose = ptr.To(string(config.Spec.Purpose))
		}
		states = append(states, entry)
	}
	return states
}

// References returns the Secrets and ConfigMaps that states name, each once, in the order of kinds and names.
func References(states []corev1beta1.ExtensionResourceState) []autoscalingv1.CrossVersionObjectReference {
	var references []autoscalingv1.CrossVersionObjectReference
	for _, state := range states {
		for _, resource := range state.Resources {
			reference := resource.ResourceRef
			known := reference.Kind == "Secret" || reference.Kind == "ConfigMap"
			if known && reference.APIVersion == corev1.SchemeGroupVersion.String() && !slices.Contains(references, reference) {
				references = append(references, reference)
			}
		}
	}
	slices.SortFunc(references, func(a, b autoscalingv1.CrossVersionObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return references
}

// resourceOf returns what a ShootState has of an object that a state names: the object, without what its API server has added. The garden encrypts
// ShootStates in etcd, as it does Secrets.
func resourceOf(reference autoscalingv1.CrossVersionObjectReference, object client.Object) (corev1beta1.ResourceData, error) {
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return corev1beta1.ResourceData{}, fmt.Errorf("copy %s %s: it has no metadata", reference.Kind, reference.Name)
	}
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	kept := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), Labels: labels, Annotations: annotations}
	switch typed := copied.(type) {
	case *corev1.Secret:
		typed.TypeMeta, typed.ObjectMeta = metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind}, kept
	case *corev1.ConfigMap:
		typed.TypeMeta, typed.ObjectMeta = metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind}, kept
	}
	text, err := json.Marshal(copied)
	if err != nil {
		return corev1beta1.ResourceData{}, fmt.Errorf("store %s %s: it cannot be encoded", reference.Kind, reference.Name) // the cause may quote its data
	}
	return corev1beta1.ResourceData{CrossVersionObjectReference: reference, Data: runtime.RawExtension{Raw: text}}, nil
}
