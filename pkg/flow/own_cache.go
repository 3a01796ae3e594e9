package flow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// OwnCache returns a cache of the ManagedResources that one flow has emitted, for its watches. It has those of some namespaces, or of all if
// none are given. Add it to the manager.
func OwnCache(mgr manager.Manager, flow string, namespaces ...string) (cache.Cache, error) {
	selected := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{LabelFlow: flow}), Transform: cachetransform.NewCompactor().Compact}
	for _, namespace := range namespaces {
		if selected.Namespaces == nil {
			selected.Namespaces = map[string]cache.Config{}
		}
		selected.Namespaces[namespace] = cache.Config{}
	}
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), NewInformer: rewatch.NewInformer,
		ByObject: map[client.Object]cache.ByObject{&resourcesv1alpha1.ManagedResource{}: selected},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the ManagedResources of %s: %w", flow, err)
	}
	return made, nil
}
