// Package v1alpha1 is the API group seedmanagement.gardener.cloud/v1alpha1: the kinds that make clusters Seeds:
// ManagedSeed, ManagedSeedSet and Gardenlet.
//
// The types are the same on the wire as those of Gardener. The API server uses them for storage, too; there are no
// internal ones.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.seedmanagement.v1alpha1
// +groupName=seedmanagement.gardener.cloud
package v1alpha1
