// Package providerlabels labels credentials with the types of the providers that use them. Admission webhooks of providers
// select credentials by these labels.
package providerlabels

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/bindings"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/sync-provider-secret-labels"

// New returns the handler for Secrets and InternalSecrets. The reader reads bindings, and may be a cache: their controllers also set
// the labels.
func New(reader client.Reader) admission.Handler {
	newObject := func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} }
	return admit.Mutating(newObject, func(ctx context.Context, request *admission.Request, object *metav1.PartialObjectMetadata) error {
		use, err := useOf(ctx, reader, request)
		if err != nil || !use.Any() {
			return err
		}
		object.Labels = bindings.ProviderLabels(object.Labels, use.Providers)
		return nil
	})
}

// useOf returns how bindings use the object of a request.
func useOf(ctx context.Context, reader client.Reader, request *admission.Request) (bindings.Use, error) {
	var (
		secrets     corev1beta1.SecretBindingList
		credentials securityv1alpha1.CredentialsBindingList
	)
	if err := reader.List(ctx, &credentials, client.UnsafeDisableDeepCopy); err != nil {
		return bindings.Use{}, fmt.Errorf("list CredentialsBindings: %w", err)
	}
	if request.Kind.Kind == bindings.Secret && request.Kind.Group == corev1.GroupName {
		if err := reader.List(ctx, &secrets, client.UnsafeDisableDeepCopy); err != nil {
			return bindings.Use{}, fmt.Errorf("list SecretBindings: %w", err)
		}
	}
	object := bindings.Reference{Kind: request.Kind.Kind, NamespacedName: types.NamespacedName{Namespace: request.Namespace, Name: request.Name}}
	return bindings.UseOf(object, secrets.Items, credentials.Items), nil
}
