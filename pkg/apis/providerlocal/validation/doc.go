// Package validation checks the provider configurations of provider-local. It reads no other objects.
package validation
