// Package protection contains the garden's controllers that keep objects which are being deleted while others use them. A table says
// which kind is used by which other kinds.
package protection
