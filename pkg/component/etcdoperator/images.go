package etcdoperator

import (
	"slices"

	"github.com/trellis-k8s/trellis/pkg/images"
)

// component is the name of the operator in the files with images of components.
const component = "etcd-druid"

// Images returns the list of images with the overwrites from the files that the environment names. From the list of the
// operator itself, only the image of the members is used. It returns an error if a file cannot be read or is not valid.
func Images() (images.Vector, error) {
	vector, err := images.FromEnvironment()
	if err != nil {
		return nil, err
	}
	components, err := images.ComponentsFromEnvironment()
	if err != nil {
		return nil, err
	}
	member := slices.DeleteFunc(components[component], func(s images.Source) bool { return s.Name != ImageMember })
	return vector.Overwrite(member), nil
}
