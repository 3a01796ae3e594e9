// Package v1alpha1 is the resource-manager's configuration file,
// resourcemanager.config.gardener.cloud/v1alpha1: types, defaults, validation and loading.
//
// Names, types, defaults and rules are those of gardener-resource-manager, so that its files work unchanged,
// except where a comment names another source: "component-base" (k8s.io/component-base), "Kubernetes" (what its
// API server checks) or "Trellis". A field whose comment gives no rule takes every value of its type.
//
// Load and Parse return a configuration that is defaulted and validated. Everything here is pure apart from the
// one file that Load reads.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +groupName=resourcemanager.config.gardener.cloud
package v1alpha1
