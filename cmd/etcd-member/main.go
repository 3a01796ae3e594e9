// Command etcd-member runs one member of an etcd cluster.
package main

import "github.com/trellis-k8s/trellis/cmd/etcd-member/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
