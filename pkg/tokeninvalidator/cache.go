package tokeninvalidator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// CacheOptions returns the options of the cache for the controller. The cache holds the metadata of Secrets of the type
// for static tokens, the fields of ServiceAccounts that define whether their tokens are wanted, and the Secrets that
// running Pods use. Do not share it with other users, which may need more fields.
func CacheOptions() cache.Options {
	return cache.Options{ReaderFailOnMissingInformer: true, ByObject: map[client.Object]cache.ByObject{
		newSecret(): {
			Field:     fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)),
			Transform: cachetransform.Of(keepTokenSecret),
		},
		&corev1.ServiceAccount{}: {Transform: cachetransform.Of(keepSettings)},
		&corev1.Pod{}: {
			// A Pod that has ended uses no Secrets. The watch reports its end as a deletion.
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
			),
			Transform: cachetransform.Of(keepUsedSecrets),
		},
	}}
}

func newSecret() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

func keepTokenSecret(secret *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: cachetransform.Meta(secret)}
	kept.Labels = cachetransform.KeepKeys(secret.Labels, resourcesv1alpha1.LabelPurpose, resourcesv1alpha1.LabelTokenInvalidatorConsider)
	kept.Annotations = cachetransform.KeepKeys(secret.Annotations, corev1.ServiceAccountNameKey)
	return kept
}

func keepSettings(account *corev1.ServiceAccount) *corev1.ServiceAccount {
	kept := &corev1.ServiceAccount{
		ObjectMeta: cachetransform.Meta(account), AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}
	kept.Labels = cachetransform.KeepKeys(account.Labels, resourcesv1alpha1.LabelTokenInvalidatorSkip)
	return kept
}

// keepUsedSecrets reduces a Pod to one volume per Secret that it uses.
func keepUsedSecrets(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{ObjectMeta: cachetransform.Meta(pod)}
	for _, name := range usedSecrets(&pod.Spec) {
		kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}},
		})
	}
	return kept
}

// Indexes of the cache.
const (
	// accountIndex indexes Secrets by the name of their ServiceAccount. In newer versions of Kubernetes, ServiceAccounts
	// do not list their Secrets.
	accountIndex = "serviceAccount"
	// usedIndex indexes Pods by the names of the Secrets that they use.
	usedIndex = "usedSecret"
)

func accountOf(secret client.Object) []string {
	if name := secret.GetAnnotations()[corev1.ServiceAccountNameKey]; name != "" {
		return []string{name}
	}
	return nil
}

// usedBy returns the Secrets that a cached Pod uses.
func usedBy(obj client.Object) []string {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return usedSecrets(&pod.Spec)
}
