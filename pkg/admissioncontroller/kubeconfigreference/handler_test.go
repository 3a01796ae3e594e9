package kubeconfigreference

import (
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestReference(t *testing.T) {
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{KubeAPIServer: &corev1beta1.KubeAPIServerConfig{
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "PodSecurity"}, {Name: "ImagePolicyWebhook", KubeconfigSecretName: ptr.To("images")}},
		StructuredAuthorization: &corev1beta1.StructuredAuthorization{
			Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "hook", SecretName: "hook"}},
		},
	}}}}
	for secret, want := range map[string]string{
		"images": "spec.kubernetes.kubeAPIServer.admissionPlugins[1].kubeconfigSecretName",
		"hook":   "spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName",
		"other":  "",
	} {
		if got := reference(shoot, secret); got != want {
			t.Errorf("%s: got %q, want %q", secret, got, want)
		}
	}
	if got := reference(&corev1beta1.Shoot{}, "images"); got != "" {
		t.Errorf("a Shoot without settings refers to it in %q", got)
	}
}
