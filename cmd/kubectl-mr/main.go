// Command kubectl-mr is the command line for operators of ManagedResources. It runs standalone and as `kubectl mr`.
package main

import "github.com/trellis-k8s/trellis/cmd/kubectl-mr/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
