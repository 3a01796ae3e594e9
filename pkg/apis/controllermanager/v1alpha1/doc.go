// Package v1alpha1 has the configuration file of the controller-manager of the garden, controllermanager.config.gardener.cloud/v1alpha1. Fields
// and defaults are those of Gardener, as far as the controllers exist.
package v1alpha1
