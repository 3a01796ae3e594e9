// Package v1alpha1 is the API group operator.gardener.cloud/v1alpha1: the kinds of the operator, which runs the garden:
// Garden and Extension.
//
// The CustomResourceDefinitions are generated from the types.
//
// +kubebuilder:object:generate=true
// +groupName=operator.gardener.cloud
package v1alpha1
