// Package validation checks the provider configurations of provider-local. It reads nothing but what it is given.
package validation
