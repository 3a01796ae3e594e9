package flow

import (
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/watches"
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
	return watches.NewCache(mgr, "the ManagedResources of "+flow, cache.Options{
		ByObject: map[client.Object]cache.ByObject{&resourcesv1alpha1.ManagedResource{}: selected},
	})
}
