// Package project contains the garden's controller of Projects: it makes or adopts the namespace of a Project, maintains the rights of
// its members and the default ResourceQuota, and deletes the namespace with the Project.
package project
