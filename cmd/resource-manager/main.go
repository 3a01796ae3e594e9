// Command resource-manager applies the manifests of ManagedResources to a target cluster, and corrects drift.
package main

import "github.com/trellis-k8s/trellis/cmd/resource-manager/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
