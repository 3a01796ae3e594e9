// Package v1alpha1 is the API group extensions.gardener.cloud/v1alpha1: the kinds with which extensions are requested
// infrastructure, machines, networks and more.
//
// The CustomResourceDefinitions are generated from the types.
//
// +kubebuilder:object:generate=true
// +groupName=extensions.gardener.cloud
package v1alpha1
