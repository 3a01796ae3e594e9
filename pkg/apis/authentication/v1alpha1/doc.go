// Package v1alpha1 is the API group authentication.gardener.cloud/v1alpha1: the requests for kubeconfigs, which are bodies
// of subresources of Shoots and no resources of their own.
//
// The types are the same on the wire as those of Gardener. The API server uses them for storage, too; there are no
// internal ones.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.authentication.v1alpha1
// +groupName=authentication.gardener.cloud
package v1alpha1
