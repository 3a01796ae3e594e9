// Package tools pins, in its own module, the programs that the Makefile runs with `go tool`.
package tools
