// Package v1alpha1 has the configuration file of gardenlets, gardenlet.config.gardener.cloud/v1alpha1. Fields and defaults are those of
// Gardener.
//
// +kubebuilder:object:generate=true
package v1alpha1
