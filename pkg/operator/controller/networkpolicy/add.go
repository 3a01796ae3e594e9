// Package networkpolicy adds the controller of the general network policies in the runtime cluster of a garden. If the cluster is also a seed,
// they are also those of the namespaces of Shoots and extensions, which gardenlet hands over.
package networkpolicy

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Controller returns the controller of network policies.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "network-policy", When: controller.WithGarden, Add: add,
		Selects: []controller.Select{
			// The addresses of the API server of the runtime cluster.
			{Object: &discoveryv1.EndpointSlice{}, Options: cache.ByObject{Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}}},
		},
		Rights: []rights.Right{
			rights.May("networks of the runtime cluster", operatorv1alpha1.GroupName, []string{"gardens"}, rights.Reads()...),
			rights.May("which namespaces have policies", "", []string{"namespaces"}, rights.Reads()...),
			rights.May("addresses of the API server", "discovery.k8s.io", []string{"endpointslices"}, rights.Reads()...),
			rights.May("networks of Shoots, in a seed", "extensions.gardener.cloud", []string{"clusters"}, rights.Reads()...),
			rights.May("which kinds exist", "apiextensions.k8s.io", []string{"customresourcedefinitions"}, rights.Reads()...),
			rights.May("policies", resourcesv1alpha1.GroupName, []string{"managedresources"}, append(rights.Reads(), "create", "patch", "delete")...),
			rights.May("manifests of policies", "", []string{"secrets"}, append(rights.Reads(), "create", "patch", "delete")...).InNamespace(),
		},
	}
}

func add(_ context.Context, deps controller.Deps) error {
	mgr := deps.Manager
	objects, err := target.NewObjects(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r := &networkpolicy.Reconciler{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: deps.Clock,
		Options: networkpolicy.Options{
			Namespace: deps.Namespace, Version: deps.Version, FieldManager: string(controller.FieldManager), OfGarden: true,
			AdditionalSelectors: deps.Config.Controllers.NetworkPolicy.AdditionalNamespaceSelectors,
		},
		Subject: func(ctx context.Context) (*networkpolicy.Subject, error) {
			return subject(ctx, mgr.GetClient(), deps.Namespace)
		},
		Changes: []source.Source{
			source.Kind[client.Object](mgr.GetCache(), &operatorv1alpha1.Garden{}, networkpolicy.ToAll(), declared()),
		},
	}
	return r.AddToManager(mgr)
}

// declared passes Gardens whose declaration changes, or that are being deleted.
func declared() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}})
}

// subject returns the Garden that is reconciled; nil if there is none.
func subject(ctx context.Context, reader client.Reader, namespace string) (*networkpolicy.Subject, error) {
	var gardens operatorv1alpha1.GardenList
	if err := reader.List(ctx, &gardens); err != nil {
		return nil, fmt.Errorf("list the Gardens: %w", err)
	}
	garden := first(gardens.Items)
	if garden == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	deleting := garden.DeletionTimestamp != nil
	var ofSeed resourcesv1alpha1.ManagedResourceList
	if err := reader.List(ctx, &ofSeed, client.InNamespace(namespace), client.MatchingLabels{flow.LabelFlow: inventory.FlowSeed}); err != nil {
		return nil, fmt.Errorf("list the ManagedResources of gardenlet in namespace %s: %w", namespace, err)
	}
	networks := garden.Spec.RuntimeCluster.Networking
	return &networkpolicy.Subject{
		UID: garden.UID, Name: garden.Name, Deleting: deleting, Released: deleting && len(ofSeed.Items) > 0,
		Networks: networkpolicies.Networks{Nodes: networks.Nodes, Pods: networks.Pods, Services: networks.Services, Blocked: networks.BlockCIDRs},
	}, nil
}

// first returns the Garden that the operator reconciles: the oldest one.
func first(gardens []operatorv1alpha1.Garden) *operatorv1alpha1.Garden {
	var oldest *operatorv1alpha1.Garden
	for i := range gardens {
		if oldest == nil || gardens[i].CreationTimestamp.Before(&oldest.CreationTimestamp) {
			oldest = &gardens[i]
		}
	}
	return oldest
}
