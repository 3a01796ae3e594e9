// Package tools pins, in its own module, the programs that the Makefile runs with `go tool`. The packages below it need
// libraries that the product does not need.
package tools
