// Command etcd-operator deploys the etcd clusters that Etcds declare.
package main

import "github.com/trellis-k8s/trellis/cmd/etcd-operator/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
