// Package charts has the Helm charts that the operator and gardenlets render.
package charts

import "embed"

// Files are the charts of the programs of a garden, and of gardenlets.
//
//go:embed all:apiserver all:controller-manager all:scheduler all:admission-controller all:gardenlet
var Files embed.FS
