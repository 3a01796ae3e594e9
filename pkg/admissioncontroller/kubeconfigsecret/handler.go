// Package kubeconfigsecret rejects Secrets with kubeconfigs that run programs, read files or impersonate other users.
// Programs of the garden use kubeconfigs of users, so these would act with the rights and files of the programs.
package kubeconfigsecret

import (
	"bytes"
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/validate-kubeconfig-secrets"

// key is the key of the data of a Secret with a kubeconfig.
const key = "kubeconfig"

// New returns the handler.
func New() admission.Handler {
	return admit.Validating(func(_ context.Context, request *admission.Request) error {
		if len(request.Object.Raw) == 0 {
			return nil
		}
		secret, err := admit.Decode[corev1.Secret](request, request.Object.Raw)
		if err != nil {
			return err
		}
		content, found := secret.Data[key]
		if !found {
			return nil
		}
		if len(request.OldObject.Raw) > 0 {
			before, err := admit.Decode[corev1.Secret](request, request.OldObject.Raw)
			if err == nil && bytes.Equal(before.Data[key], content) {
				return nil // labels and finalizers of an older Secret can still be changed
			}
		}
		if err := kubeconfig.CheckInline(content); err != nil {
			return admit.Refuse(http.StatusUnprocessableEntity, "data.kubeconfig of Secret %s/%s: %w", request.Namespace, request.Name, err)
		}
		return nil
	})
}
