// Package v1alpha1 has the configuration file of the controller-manager of the garden,
// controllermanager.config.gardener.cloud/v1alpha1. Fields and defaults are those of Gardener for the existing
// controllers.
package v1alpha1
