// Package evictionrequirements adds the controller that restricts when VerticalPodAutoscalers may evict Pods in the runtime cluster of a garden. If
// the cluster is also a seed, gardenlet leaves this to the operator.
package evictionrequirements

import (
	"context"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/evictionrequirements"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Controller returns the controller of eviction requirements.
func Controller() controller.Controller {
	return controller.Controller{
		Name: evictionrequirements.ControllerName, When: controller.WithGarden, Add: add,
		Rights: []rights.Right{
			rights.May("eviction requirements", "autoscaling.k8s.io", []string{"verticalpodautoscalers"}, append(rights.Reads(), "patch")...),
			rights.May("which kinds exist", "apiextensions.k8s.io", []string{"customresourcedefinitions"}, rights.Reads()...),
		},
	}
}

func add(_ context.Context, deps controller.Deps) error {
	mgr := deps.Manager
	objects, err := target.NewObjects(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r := &evictionrequirements.Reconciler{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: deps.Clock,
		FieldManager: string(controller.FieldManager), ConcurrentSyncs: *deps.Config.Controllers.VPAEvictionRequirements.ConcurrentSyncs,
	}
	return r.AddToManager(mgr)
}
