// Command node-agent runs on the machines of a Shoot and applies their configuration. Machines have it as gardener-node-agent.
package main

import "github.com/trellis-k8s/trellis/cmd/node-agent/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
