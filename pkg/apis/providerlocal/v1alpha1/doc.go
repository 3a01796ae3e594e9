// Package v1alpha1 is the API group local.provider.extensions.gardener.cloud/v1alpha1: the provider configurations that the extension
// provider-local reads, and what it reports in the provider status and the state of extension resources. No API server serves these kinds:
// they occur in fields of other objects.
//
// +kubebuilder:object:generate=true
// +groupName=local.provider.extensions.gardener.cloud
package v1alpha1
