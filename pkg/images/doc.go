// Package images contains the list of all container images of components: images.yaml. A component requests an image by
// name, so that an operator can replace any image in one place, for example to use a mirror. Overwrite files have the
// formats of Gardener's image vector overwrites.
package images
