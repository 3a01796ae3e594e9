// Package namespacedcloudprofile contains the garden's controller that computes the status of NamespacedCloudProfiles: the specification
// of the parent with the changes of the project.
package namespacedcloudprofile
