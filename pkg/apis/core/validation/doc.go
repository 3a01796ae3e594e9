// Package validation checks objects of core.gardener.cloud/v1beta1 after their defaults are set. The rules are Gardener's. A
// function takes what it needs and reports all errors with the paths of their fields; what depends on other objects is
// checked at admission.
package validation
