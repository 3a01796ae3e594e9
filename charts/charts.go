// Package charts has the Helm charts that the operator renders.
package charts

import "embed"

// Files are the charts of the programs of a garden.
//
//go:embed all:apiserver all:controller-manager all:scheduler all:admission-controller
var Files embed.FS
