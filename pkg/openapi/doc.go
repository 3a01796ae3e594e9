// Package openapi has the OpenAPI definitions of the kinds that the garden's API server serves. All of it is generated.
package openapi
