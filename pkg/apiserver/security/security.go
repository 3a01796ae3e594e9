// Package security has the kinds of the group security.gardener.cloud as the API server serves them.
package security

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/security/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type (
	credentialsBinding = *securityv1alpha1.CredentialsBinding
	workloadIdentity   = *securityv1alpha1.WorkloadIdentity
)

// Kinds returns the kinds of the group.
func Kinds(tokens Tokens) []registry.Served {
	return []registry.Served{credentialsBindings(), workloadIdentities(tokens)}
}

func resource(kind string) served.Resource {
	return served.Of(securityv1alpha1.SchemeGroupVersion.WithKind(kind))
}

func credentialsBindings() *registry.Kind[credentialsBinding] {
	return &registry.Kind[credentialsBinding]{
		Resource: resource("CredentialsBinding"),
		New:      func() credentialsBinding { return &securityv1alpha1.CredentialsBinding{} },
		NewList:  func() runtime.Object { return &securityv1alpha1.CredentialsBindingList{} },
		Columns: []registry.Column[credentialsBinding]{
			{Name: "Provider", Description: "Type of the infrastructure.", Value: func(b credentialsBinding) any { return b.Provider.Type }},
			{
				Name: "APIVersion", Description: "API version of the credentials.",
				Value: func(b credentialsBinding) any { return b.CredentialsRef.APIVersion },
			},
			{Name: "Kind", Description: "Kind of the credentials.", Value: func(b credentialsBinding) any { return b.CredentialsRef.Kind }},
			{Name: "Name", Description: "Namespace and name of the credentials.", Value: func(b credentialsBinding) any {
				return b.CredentialsRef.Namespace + "/" + b.CredentialsRef.Name
			}},
		},
		// Default again, because the namespace of an object is known only now if the object did not set it.
		PrepareForCreate: func(_ context.Context, b credentialsBinding) { securityv1alpha1.SetDefaultsCredentialsBinding(b) },
		Validate:         validation.ValidateCredentialsBinding,
		ValidateUpdate:   validation.ValidateCredentialsBindingUpdate,
	}
}

func workloadIdentities(tokens Tokens) *registry.Kind[workloadIdentity] {
	return &registry.Kind[workloadIdentity]{
		Resource: resource("WorkloadIdentity"),
		New:      func() workloadIdentity { return &securityv1alpha1.WorkloadIdentity{} },
		NewList:  func() runtime.Object { return &securityv1alpha1.WorkloadIdentityList{} },
		Columns: []registry.Column[workloadIdentity]{
			{Name: "Sub", Description: "Subject of the tokens.", Value: func(w workloadIdentity) any { return w.Status.Sub }},
			{
				Name: "Type", Description: "Type of the system that accepts the tokens.",
				Value: func(w workloadIdentity) any { return w.Spec.TargetSystem.Type },
			},
			{Name: "Audiences", Description: "Audiences of the tokens.", Wide: true, Value: func(w workloadIdentity) any {
				return strings.Join(w.Spec.Audiences, ",")
			}},
		},
		CopyStatus: func(to, from workloadIdentity) { to.Status = from.Status },
		// Name and UID are already set here.
		PrepareForCreate: func(_ context.Context, w workloadIdentity) {
			w.Status.Sub = constants.PrefixWorkloadIdentitySubject + strings.Join([]string{w.Namespace, w.Name, string(w.UID)}, ":")
		},
		Validate:       validation.ValidateWorkloadIdentity,
		ValidateUpdate: validation.ValidateWorkloadIdentityUpdate,
		Further: func(main *registry.Storage[workloadIdentity]) map[string]rest.Storage {
			return map[string]rest.Storage{"token": &tokenREST{Tokens: tokens, identities: main}}
		},
	}
}
