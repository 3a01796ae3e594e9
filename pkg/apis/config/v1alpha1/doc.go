// Package v1alpha1 contains the types, defaults, validation and loading of the resource-manager's configuration file,
// resourcemanager.config.gardener.cloud/v1alpha1.
//
// Names, types, defaults and rules are those of gardener-resource-manager, so that its files work unchanged. Exceptions
// are marked in comments with their source: "component-base" (k8s.io/component-base), "Kubernetes" (validation in its
// API server) or "Trellis". A field without a rule in its comment accepts every value of its type.
//
// Load and Parse return a defaulted and validated configuration. All functions are pure except Load, which reads one
// file.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +groupName=resourcemanager.config.gardener.cloud
package v1alpha1
