package gardencare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/virtual"
	"github.com/trellis-k8s/trellis/pkg/rights"
)

// probeTimeout limits a request to the API server of the virtual garden.
const probeTimeout = 10 * time.Second

// Controller returns the controller of the conditions of Gardens.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "garden-care", When: controller.WithGarden, Add: add,
		Rights: []rights.Right{
			rights.May("conditions of Gardens", operatorv1alpha1.GroupName, []string{"gardens"}, rights.Reads()...),
			rights.May("conditions of Gardens", operatorv1alpha1.GroupName, []string{"gardens/status"}, "patch"),
			rights.May("health of components", resourcesv1alpha1.GroupName, []string{"managedresources"}, rights.Reads()...),
			rights.May("its kubeconfig for the virtual garden", "", []string{"secrets"}, "get").InNamespace(),
		},
	}
}

func add(ctx context.Context, deps controller.Deps) error {
	c := &care{client: deps.Manager.GetClient(), config: deps.Config.Controllers.GardenCare, clock: deps.Clock}
	directory, err := os.MkdirTemp("", "garden-care-")
	if err != nil {
		return fmt.Errorf("create a directory for the token of the virtual garden: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(directory) }) // the process ends
	access := virtual.New(deps.Manager.GetAPIReader(), deps.Namespace, directory, "gardener-operator/"+deps.Version, deps.Config, deps.Address)
	c.probe = func(ctx context.Context) (bool, error) { return probe(ctx, access) }
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return c.all(ctx) })
	return frame.Start(deps.Manager, "garden-care", c, deps.Config.Controllers.GardenCare.ConcurrentSyncs,
		frame.On(&operatorv1alpha1.Garden{}, nil, frame.Changes(func(before, after *operatorv1alpha1.Garden) bool {
			return succeeded(before) != succeeded(after) || !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		})),
		frame.On(&resourcesv1alpha1.ManagedResource{}, all, frame.Changes(func(before, after *resourcesv1alpha1.ManagedResource) bool {
			return slices.Contains(namespaces(), after.Namespace) && (before.Generation != after.Generation ||
				before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
				!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions))
		})))
}

func succeeded(garden *operatorv1alpha1.Garden) bool {
	return garden.Status.LastOperation != nil && garden.Status.LastOperation.State == corev1beta1.LastOperationStateSucceeded
}

// all returns requests for all Gardens. There is one.
func (c *care) all(ctx context.Context) []reconcile.Request {
	gardens := &operatorv1alpha1.GardenList{}
	if err := c.client.List(ctx, gardens); err != nil {
		return nil // the process ends, or the watch of Gardens reports all once the cache is filled
	}
	var names []string
	for i := range gardens.Items {
		names = append(names, gardens.Items[i].Name)
	}
	return frame.Requests(names...)
}

// probe asks the API server whether it is healthy.
func probe(ctx context.Context, access *virtual.Access) (connected bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	config, err := access.Refresh(ctx)
	switch {
	case errors.Is(err, virtual.ErrNotReady):
		return false, nil
	case err != nil: // the process connects again, or the Secret cannot be read
		return true, err
	}
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return true, err
	}
	return true, asks.RESTClient().Get().AbsPath("/healthz").Do(ctx).Error()
}
