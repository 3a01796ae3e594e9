// Package providerlabels labels credentials with the types of the providers that use them. Admission webhooks of providers
// select credentials by these labels.
package providerlabels

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/sync-provider-secret-labels"

// New returns the handler for Secrets and InternalSecrets. The reader reads bindings, and may be a cache: their controllers also set
// the labels.
func New(reader client.Reader) admission.Handler {
	newObject := func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} }
	return admit.Mutating(newObject, func(ctx context.Context, request *admission.Request, object *metav1.PartialObjectMetadata) error {
		types, err := providerTypes(ctx, reader, request)
		if err != nil || types == nil {
			return err
		}
		sync(object, types)
		return nil
	})
}

// sync sets the labels of an object to exactly those of the given types of providers.
func sync(object *metav1.PartialObjectMetadata, types map[string]bool) {
	labels := maps.Clone(object.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, constants.LabelPrefixShootProvider) })
	for one := range types {
		labels[constants.LabelPrefixShootProvider+one] = "true"
	}
	object.Labels = labels
}

// providerTypes returns the types of the providers in the bindings that refer to the object of a request. It returns nil if
// no binding does.
func providerTypes(ctx context.Context, reader client.Reader, request *admission.Request) (map[string]bool, error) {
	var types map[string]bool
	add := func(list string) {
		if types == nil {
			types = map[string]bool{}
		}
		for one := range strings.SplitSeq(list, ",") {
			types[one] = true
		}
	}
	credentials := &securityv1alpha1.CredentialsBindingList{}
	if err := reader.List(ctx, credentials, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list CredentialsBindings: %w", err)
	}
	for _, binding := range credentials.Items {
		ref := binding.CredentialsRef
		if ref.Kind == request.Kind.Kind && ref.Namespace == request.Namespace && ref.Name == request.Name {
			add(binding.Provider.Type)
		}
	}
	if request.Kind.Kind != "Secret" || request.Kind.Group != corev1.GroupName {
		return types, nil
	}
	secrets := &corev1beta1.SecretBindingList{}
	if err := reader.List(ctx, secrets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list SecretBindings: %w", err)
	}
	for _, binding := range secrets.Items {
		if ref := binding.SecretRef; binding.Provider != nil && ref.Namespace == request.Namespace && ref.Name == request.Name {
			add(binding.Provider.Type)
		}
	}
	return types, nil
}
