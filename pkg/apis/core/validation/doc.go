// Package validation checks objects of core.gardener.cloud/v1beta1 after their defaults are set. The rules are
// Gardener's. A function returns all errors with the paths of their fields. Rules that depend on other objects are
// checked at admission.
package validation
