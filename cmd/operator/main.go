// Command operator turns a cluster and one Garden into a garden: its API server, its controllers, its extensions and its gardenlets.
package main

import "github.com/trellis-k8s/trellis/cmd/operator/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
