// Package v1alpha1 contains the API group resources.gardener.cloud/v1alpha1: the ManagedResource, the labels and
// annotations that control how its objects are handled, and its condition types and reasons.
//
// The package depends only on apimachinery, so that every client can import it.
//
// +kubebuilder:object:generate=true
// +groupName=resources.gardener.cloud
package v1alpha1
