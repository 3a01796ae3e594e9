// Package images has the list of all container images that the components use: images.yaml. A component asks for an image by name, so that
// an operator replaces any image, for example by that of a mirror, in one place. The files of overwrites have the formats of Gardener's image
// vector overwrites.
package images
