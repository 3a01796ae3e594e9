// Command apiserver serves the API of the garden behind the aggregator of a kube-apiserver.
package main

import "github.com/trellis-k8s/trellis/cmd/apiserver/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
