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

// States returns the entries of a ShootState for extension objects of a kind. It skips objects that are being deleted,
// and objects without a state and references.
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

// References returns the Secrets and ConfigMaps that states reference, without duplicates, sorted by kind and name.
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

// resourceOf returns the entry of a ShootState for a referenced object, without fields that the API server sets. The
// garden encrypts ShootStates in etcd, like Secrets.
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
		// Omit the cause, which may contain its data.
		return corev1beta1.ResourceData{}, fmt.Errorf("store %s %s: it cannot be encoded", reference.Kind, reference.Name)
	}
	return corev1beta1.ResourceData{CrossVersionObjectReference: reference, Data: runtime.RawExtension{Raw: text}}, nil
}
