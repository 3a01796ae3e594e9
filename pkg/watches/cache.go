package watches

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// NewCache returns a cache of a cluster or manager next to its own one, for example with other selectors. The caller adds it to the manager.
// Its objects have no managed fields, unless the options transform them otherwise. of names its objects in errors, for example "the default
// domains".
func NewCache(c cluster.Cluster, of string, options cache.Options) (cache.Cache, error) {
	options.HTTPClient, options.Scheme, options.Mapper, options.NewInformer = c.GetHTTPClient(), c.GetScheme(), c.GetRESTMapper(), rewatch.NewInformer
	if options.DefaultTransform == nil {
		options.DefaultTransform = cache.TransformStripManagedFields()
	}
	made, err := cache.New(c.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("make a cache of %s: %w", of, err)
	}
	return made, nil
}
