package seed

import "github.com/trellis-k8s/trellis/pkg/images"

// image returns an image by its name.
func (in Inputs) image(name string) (string, error) {
	image, err := in.Images.Find(name, images.Options{RuntimeVersion: in.KubernetesVersion, TargetVersion: in.KubernetesVersion})
	if err != nil {
		return "", err
	}
	return image.Reference, nil
}
