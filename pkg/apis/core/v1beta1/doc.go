// Package v1beta1 is the API group core.gardener.cloud/v1beta1: the kinds that users and operators of a fleet declare:
// Shoots, Seeds, CloudProfiles, Projects and what belongs to them.
//
// The types are the same on the wire as those of Gardener. The API server uses them for storage, too; there are no
// internal ones.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.core.v1beta1
// +groupName=core.gardener.cloud
package v1beta1
