// Package images has the list of all container images that the components use: images.yaml. A component asks it for an image by name, so
// that an operator replaces any image, for example by a mirror's, in one place. The file that replaces has the format of Gardener's image
// vector overwrites.
package images
