// Package oci writes container images from files of this machine, without a container engine and without a registry: the same files make the
// same image, byte for byte. Images are kept in an OCI layout, a directory in which equal layers are stored once.
package oci
