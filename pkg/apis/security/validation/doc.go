// Package validation checks objects of security.gardener.cloud/v1alpha1 after their defaults are set. The rules are
// Gardener's.
package validation
