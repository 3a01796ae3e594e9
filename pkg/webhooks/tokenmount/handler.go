// Package tokenmount implements the webhook that mounts a short-lived, projected ServiceAccount token into Pods whose
// ServiceAccount disables the token mounts of Kubernetes.
//
// It reads the automountServiceAccountToken of ServiceAccounts in the namespaces of Pods.
package tokenmount

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/mount-projected-service-account-token"

const (
	// LabelSkip on a Pod, with any value, opts out. The selectors of the webhook match it.
	LabelSkip = "projected-token-mount.resources.gardener.cloud/skip"
	// AnnotationExpirationSeconds on a Pod is how many seconds its tokens are valid. It takes precedence over the
	// configuration.
	AnnotationExpirationSeconds = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
)

// Options are the settings of the webhook.
type Options struct {
	// ExpirationSeconds is how many seconds a token is valid if the Pod does not set it, at least 600.
	ExpirationSeconds int64
}

// NewHandler returns a handler for the creation of Pods. It reads ServiceAccounts from the cached reader. The cache may
// be stale, so the live reader is used before a Pod is rejected because its ServiceAccount does not exist.
func NewHandler(cached, live client.Reader, options Options) admission.Handler {
	newPod := func() *corev1.Pod { return &corev1.Pod{} }
	return admit.Mutating(newPod, func(ctx context.Context, request *admission.Request, pod *corev1.Pod) error {
		if !eligible(&pod.Spec) {
			return nil
		}
		account, err := read(ctx, cached, live, client.ObjectKey{Namespace: request.Namespace, Name: pod.Spec.ServiceAccountName})
		if err != nil {
			return err
		}
		if ptr.Deref(account.AutomountServiceAccountToken, true) {
			return nil
		}
		expiration, err := expirationSeconds(pod.Annotations, options.ExpirationSeconds)
		if err != nil {
			return err
		}
		mountToken(&pod.Spec, expiration)
		return nil
	})
}

func read(ctx context.Context, cached, live client.Reader, key client.ObjectKey) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	err := cached.Get(ctx, key, account)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, account)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, admit.Refuse(http.StatusForbidden,
			"the ServiceAccount %q of the Pod does not exist in namespace %q: create it first, or "+
				"correct spec.serviceAccountName", key.Name, key.Namespace)
	case err != nil:
		return nil, admit.Unavailable(
			"cannot determine whether the Pod needs a token: its ServiceAccount %q in namespace %q cannot be read: %w",
			key.Name, key.Namespace, err)
	}
	return account, nil
}
