// Command discovery-server publishes the documents with which everybody can verify the tokens of a garden's issuers.
package main

import "github.com/trellis-k8s/trellis/cmd/discovery-server/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
