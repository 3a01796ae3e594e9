// Package validation checks objects of seedmanagement.gardener.cloud/v1alpha1 after their defaults are set. The rules are
// Gardener's.
package validation
