// Package oci writes container images from local files, without a container engine and without a registry. The same files
// result in the same image, byte for byte. Images are stored in an OCI layout, a directory in which equal layers are
// stored once.
package oci
