// Package validation checks objects of operator.gardener.cloud/v1alpha1 after their defaults are set. It has the rules that the
// CustomResourceDefinitions cannot express; the rules are Gardener's. A function returns all errors with the paths of their
// fields. Rules that depend on other objects are checked by the webhooks.
package validation
