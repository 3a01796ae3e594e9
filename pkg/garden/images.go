package garden

import (
	"slices"

	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/images"
)

// imagesOfComponents returns the list of images with the overwrites from the files that the environment names. There, the etcd operator is named
// etcd-druid. From its own list, only the image of the members is used.
func imagesOfComponents() (images.Vector, error) {
	vector, err := images.FromEnvironment()
	if err != nil {
		return nil, err
	}
	components, err := images.ComponentsFromEnvironment()
	if err != nil {
		return nil, err
	}
	member := slices.DeleteFunc(components[bundleEtcdOperator], func(s images.Source) bool { return s.Name != etcdoperator.ImageMember })
	return vector.Overwrite(member), nil
}
