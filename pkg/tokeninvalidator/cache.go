package tokeninvalidator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Cached is what a cache for the controller has to hold of the target cluster, and no more: the metadata of the Secrets of the type
// for static tokens, of ServiceAccounts whether their tokens are wanted, and of Pods that have not ended which Secrets they use.
func Cached() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		newSecret(): {
			Field:     fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)),
			Transform: keepTokenSecret,
		},
		&corev1.ServiceAccount{}: {Transform: keepWish},
		&corev1.Pod{}: {
			// A Pod that has ended uses nothing. To a watch, it is gone then.
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
			),
			Transform: keepUsedSecrets,
		},
	}
}

func newSecret() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

func keepTokenSecret(obj any) (any, error) {
	secret, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: keepMeta(secret.ObjectMeta,
		only(secret.Labels, resourcesv1alpha1.LabelPurpose, resourcesv1alpha1.LabelTokenInvalidatorConsider),
		only(secret.Annotations, corev1.ServiceAccountNameKey))}, nil
}

func keepWish(obj any) (any, error) {
	account, ok := obj.(*corev1.ServiceAccount)
	if !ok {
		return obj, nil
	}
	return &corev1.ServiceAccount{
		ObjectMeta:                   keepMeta(account.ObjectMeta, only(account.Labels, resourcesv1alpha1.LabelTokenInvalidatorSkip), nil),
		AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}, nil
}

// keepUsedSecrets keeps one volume of a Pod for each Secret that it uses.
func keepUsedSecrets(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Pod{ObjectMeta: keepMeta(pod.ObjectMeta, nil, nil)}
	for _, name := range usedSecrets(&pod.Spec) {
		kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}},
		})
	}
	return kept, nil
}

func keepMeta(meta metav1.ObjectMeta, labels, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		Labels: labels, Annotations: annotations,
	}
}

// only returns what a map has of some keys; nil if that is nothing.
func only(values map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, found := values[key]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// Indices of the cache.
const (
	// accountIndex finds Secrets by the name of their ServiceAccount: newer versions of Kubernetes do not name them there.
	accountIndex = "serviceAccount"
	// usedIndex finds Pods by the names of the Secrets that they use.
	usedIndex = "usedSecret"
)

func accountOf(secret client.Object) []string {
	if name := secret.GetAnnotations()[corev1.ServiceAccountNameKey]; name != "" {
		return []string{name}
	}
	return nil
}

// usedBy returns the Secrets that a Pod of the cache uses.
func usedBy(obj client.Object) []string {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return usedSecrets(&pod.Spec)
}
