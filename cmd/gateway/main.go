// Command gateway passes TLS connections through to Services, by the server name in the TLS handshake.
package main

import "github.com/trellis-k8s/trellis/cmd/gateway/app"

// version is set by the linker.
var version = "dev"

func main() { app.Main(version) }
