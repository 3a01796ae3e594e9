// Package kubeconfigreference keeps the kubeconfigs in Secrets that Shoots refer to. Without it, kube-apiserver of such a Shoot
// could not start: it is the address of an admission plugin or of an authorization webhook.
package kubeconfigreference

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/validate-shoot-kubeconfig-secret-ref"

// key is the key of the data of a Secret with a kubeconfig.
const key = "kubeconfig"

// New returns the handler of updates of Secrets. The reader must read from the garden without a cache.
func New(reader client.Reader) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if len(request.Object.Raw) == 0 || len(request.OldObject.Raw) == 0 {
			return nil
		}
		after, err := admit.Decode[corev1.Secret](request, request.Object.Raw)
		if err != nil {
			return err
		}
		before, err := admit.Decode[corev1.Secret](request, request.OldObject.Raw)
		if err != nil || len(after.Data[key]) > 0 || len(before.Data[key]) == 0 {
			return err
		}
		shoots := &corev1beta1.ShootList{}
		if err := reader.List(ctx, shoots, client.InNamespace(request.Namespace)); err != nil {
			return fmt.Errorf("list the Shoots that may refer to Secret %s/%s: %w", request.Namespace, request.Name, err)
		}
		for i := range shoots.Items {
			if field := reference(&shoots.Items[i], request.Name); field != "" {
				return admit.Refuse(http.StatusForbidden, "data.kubeconfig of Secret %s/%s must not be removed: Shoot %s refers to it in %s",
					request.Namespace, request.Name, shoots.Items[i].Name, field)
			}
		}
		return nil
	})
}

// reference returns the field in which a Shoot refers to the kubeconfig in a Secret, or an empty string.
func reference(shoot *corev1beta1.Shoot, secret string) string {
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return ""
	}
	const path = "spec.kubernetes.kubeAPIServer."
	for i, plugin := range server.AdmissionPlugins {
		if ptr.Deref(plugin.KubeconfigSecretName, "") == secret {
			return fmt.Sprintf("%sadmissionPlugins[%d].kubeconfigSecretName", path, i)
		}
	}
	if server.StructuredAuthorization != nil {
		for i, ref := range server.StructuredAuthorization.Kubeconfigs {
			if ref.SecretName == secret {
				return fmt.Sprintf("%sstructuredAuthorization.kubeconfigs[%d].secretName", path, i)
			}
		}
	}
	return ""
}
