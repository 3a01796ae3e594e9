// Package v1alpha1 is the API group settings.gardener.cloud/v1alpha1: the presets for OpenID Connect.
//
// The types are the same on the wire as those of Gardener. The API server uses them for storage, too; there are no
// internal ones.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.settings.v1alpha1
// +groupName=settings.gardener.cloud
package v1alpha1
