// Package cloudprofilestatus contains the garden's controller that shows the current classification of each version in the status of a
// CloudProfile.
package cloudprofilestatus
