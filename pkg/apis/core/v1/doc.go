// Package v1 is the API group core.gardener.cloud/v1: the second form of ControllerDeployment.
//
// The types are the same on the wire as those of Gardener. The API server uses them for storage, too; there are no
// internal ones.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.core.v1
// +groupName=core.gardener.cloud
package v1
