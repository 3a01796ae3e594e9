// Package projectstale contains the garden's controller that finds unused Projects, announces when they will be deleted, and
// deletes them.
package projectstale
