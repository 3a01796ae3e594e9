// Package shootreference keeps the Secrets, ConfigMaps and WorkloadIdentities that Shoots name: they get a finalizer as long as a Shoot names
// them, and the Shoot gets one until it has released them.
//
// The objects are not cached, because nothing distinguishes them from all other Secrets of the garden. The controllers read them when the
// references of a Shoot change, and list their metadata once at the start.
package shootreference
