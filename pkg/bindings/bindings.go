// Package bindings finds out how SecretBindings and CredentialsBindings use credentials and Quotas.
package bindings

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// The kinds to which bindings refer.
const (
	Secret           = "Secret"
	InternalSecret   = "InternalSecret"
	WorkloadIdentity = "WorkloadIdentity"
	Quota            = "Quota"
)

// Reference is a reference of a binding.
type Reference struct {
	Kind string
	types.NamespacedName
}

// OfSecretBinding returns the references of a SecretBinding. Those without a namespace are in that of the binding.
func OfSecretBinding(binding *corev1beta1.SecretBinding) []Reference {
	return references(binding.Namespace, Secret, binding.SecretRef.Namespace, binding.SecretRef.Name, binding.Quotas)
}

// OfCredentialsBinding returns the references of a CredentialsBinding.
func OfCredentialsBinding(binding *securityv1alpha1.CredentialsBinding) []Reference {
	ref := binding.CredentialsRef
	return references(binding.Namespace, ref.Kind, ref.Namespace, ref.Name, binding.Quotas)
}

func references(in, kind, namespace, name string, quotas []corev1.ObjectReference) []Reference {
	found := []Reference{referenceIn(in, kind, namespace, name)}
	for _, quota := range quotas {
		found = append(found, referenceIn(in, Quota, quota.Namespace, quota.Name))
	}
	return found
}

func referenceIn(in, kind, namespace, name string) Reference {
	if namespace == "" {
		namespace = in
	}
	return Reference{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Use is how bindings use an object.
type Use struct {
	// BySecretBinding and ByCredentialsBinding are set if a binding of the kind refers to the object.
	BySecretBinding, ByCredentialsBinding bool
	// Providers are the types of infrastructure for which bindings use credentials.
	Providers map[string]bool
}

// Any reports whether a binding refers to the object.
func (u Use) Any() bool { return u.BySecretBinding || u.ByCredentialsBinding }

// UseOf returns how the given bindings use an object. A binding that is being deleted still uses it.
func UseOf(object Reference, secrets []corev1beta1.SecretBinding, credentials []securityv1alpha1.CredentialsBinding) Use {
	use := Use{Providers: map[string]bool{}}
	for i := range secrets {
		binding := &secrets[i]
		if !refersTo(OfSecretBinding(binding), object) {
			continue
		}
		use.BySecretBinding = true
		if binding.Provider != nil {
			use.addProviders(binding.Provider.Type)
		}
	}
	for i := range credentials {
		if refersTo(OfCredentialsBinding(&credentials[i]), object) {
			use.ByCredentialsBinding = true
			use.addProviders(credentials[i].Provider.Type)
		}
	}
	return use
}

func refersTo(references []Reference, object Reference) bool {
	for _, reference := range references {
		if reference == object {
			return true
		}
	}
	return false
}

// addProviders adds types that are separated by commas.
func (u Use) addProviders(types string) {
	for one := range strings.SplitSeq(types, ",") {
		if one = strings.TrimSpace(one); one != "" {
			u.Providers[one] = true
		}
	}
}

// ProviderLabels returns labels that name exactly the given types of infrastructure. Webhooks of providers select credentials by them.
func ProviderLabels(labels map[string]string, providers map[string]bool) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, constants.LabelPrefixShootProvider) })
	for one := range providers {
		labels[constants.LabelPrefixShootProvider+one] = "true"
	}
	return labels
}
