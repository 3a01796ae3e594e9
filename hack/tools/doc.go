// Package tools pins, in its own module, the programs that the Makefile runs with `go tool`. What is below it needs libraries that the product does not.
package tools
