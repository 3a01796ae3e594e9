// Package v1alpha1 is the API group security.gardener.cloud/v1alpha1: the kinds about credentials: CredentialsBinding,
// WorkloadIdentity and the request for its tokens.
//
// The types are the same on the wire as those of Gardener. The API server uses them for storage, too; there are no
// internal ones.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.security.v1alpha1
// +groupName=security.gardener.cloud
package v1alpha1
