// Package crd has the CustomResourceDefinitions of the project as they are generated, and those of other projects that seeds need.
package crd

import "embed"

// Files are the definitions: those of ManagedResources in its root, and a directory for each other group.
//
//go:embed *.yaml autoscaling druid extensions gatewayapi istio machine operator
var Files embed.FS
