// Package v1alpha1 has the configuration file of the operator of a garden, operator.config.gardener.cloud/v1alpha1. Fields and defaults are
// those of Gardener.
package v1alpha1
