// Package apis has a package for each group and version of API types, and tests that apply to all of them.
package apis
