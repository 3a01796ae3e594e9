// Package projectactivity contains the garden's controller that records when a Project was used last.
package projectactivity
