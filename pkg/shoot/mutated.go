package shoot

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/installation"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionwebhooks"
)

// observeMutators reads the webhooks with which extensions change objects of control planes.
func (r *reconciler) observeMutators(ctx context.Context, in *Inputs) error {
	var configurations admissionregistrationv1.MutatingWebhookConfigurationList
	if err := r.caches.access.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the mutating webhooks of the seed: %w", err)
	}
	var bundles resourcesv1alpha1.ManagedResourceList
	if err := r.caches.emitted.List(ctx, &bundles, client.InNamespace(in.GardenNamespace),
		client.MatchingLabels{flow.LabelFlow: installation.FlowName}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources of extensions: %w", err)
	}
	installations := make(map[string]*resourcesv1alpha1.ManagedResource, len(bundles.Items))
	for i := range bundles.Items {
		installations[bundles.Items[i].Name] = &bundles.Items[i]
	}
	in.Mutators = r.rollouts.Mutators(configurations.Items, installations)
	return nil
}

// mutators returns the webhooks of extensions that select objects in the namespace of the control plane.
func (in Inputs) mutators() []flow.Mutator {
	if len(in.Mutators) == 0 {
		return nil
	}
	return extensionwebhooks.In(in.Mutators, shootnamespace.Namespace(in.namespaceValues()).Labels)
}

// markMutated marks the objects that webhooks of extensions change. Otherwise, a new version of an extension would have no effect on them:
// their manifests are the same, so the resource-manager would not send them again.
func (in Inputs) markMutated(bundles []flow.Bundle) error {
	mutators := in.mutators()
	for _, bundle := range bundles {
		if ptr.Deref(bundle.Spec.Class, "") != classSeed || bundle.Namespace != in.Namespace {
			continue
		}
		if err := flow.MarkMutated(bundle.Objects, mutators); err != nil {
			return fmt.Errorf("mark the objects of the bundle %s: %w", bundle.Name, err)
		}
	}
	return nil
}

// extensionChanged passes changes of the ManagedResources of extensions that make another revision of their webhooks known.
func extensionChanged() predicate.Predicate {
	revision := func(object client.Object) string {
		mr, is := object.(*resourcesv1alpha1.ManagedResource)
		if !is || !flow.IsRolledOut(mr) {
			return ""
		}
		return extensionwebhooks.Revision(mr)
	}
	return predicate.And(flow.EmittedBy(installation.FlowName), predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // its webhooks trigger the Shoots
		UpdateFunc: func(e event.UpdateEvent) bool {
			after := revision(e.ObjectNew)
			return after != "" && after != revision(e.ObjectOld)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	})
}

// webhooksChanged passes changes of webhooks, except those of their certificates.
func webhooksChanged() predicate.Predicate {
	without := func(object client.Object) []admissionregistrationv1.MutatingWebhook {
		configuration, is := object.(*admissionregistrationv1.MutatingWebhookConfiguration)
		if !is {
			return nil
		}
		webhooks := configuration.DeepCopy().Webhooks
		for i := range webhooks {
			webhooks[i].ClientConfig.CABundle = nil
		}
		return webhooks
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(without(e.ObjectOld), without(e.ObjectNew))
	}}
}
