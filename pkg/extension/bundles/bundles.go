package bundles

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// ClassSeed is the class of ManagedResources with objects in the seed. Those with objects in a Shoot have no class.
const ClassSeed = "seed"

// PlanFunc returns the wanted bundles for an object, and may write results of the kind to the status of the object. It is
// called for each reconcile. Apart from the status it must be a pure function, and read from caches. [Seed] and [Shoot]
// return empty bundles. A bundle that is no longer in the plan is retained, unless the plan contains a tombstone for it,
// see [Actuator.Emitted]. A plan must not have tasks.
type PlanFunc[T extensionsv1alpha1.Object] func(ctx context.Context, object T, cluster *extension.Cluster) (flow.Plan, error)

// Actuator is an [extension.Actuator] that deploys a plan:
//
//   - Reconcile and Restore emit the plan. They are done when all bundles are applied, healthy and rolled out.
//   - Delete deletes all emitted bundles in the reverse order. It is done when they no longer exist.
//   - ForceDelete does the same, but abandons the objects in the Shoot, because its API server may not be available.
//   - Migrate also deletes the ManagedResources, but retains the objects in the Shoot.
//
// Other actuators can embed it.
type Actuator[T extensionsv1alpha1.Object] struct {
	deployer *Deployer
	name     string
	plan     PlanFunc[T]
}

// NewActuator returns an actuator for objects of a kind and type. The name, such as "infrastructure", must be unique
// within the extension. It is the value of [LabelActuator].
func NewActuator[T extensionsv1alpha1.Object](deployer *Deployer, name string, plan PlanFunc[T]) *Actuator[T] {
	return &Actuator[T]{deployer: deployer, name: name, plan: plan}
}

// Sources trigger a reconcile of objects when their bundles change. They are for [extension.Options].
func (a *Actuator[T]) Sources() []source.Source { return []source.Source{a.deployer.source(a.name)} }

// Seed returns an empty bundle in a namespace, for objects in the seed.
func Seed(namespace, name string) flow.Bundle {
	bundle := flow.Bundle{Key: flow.Key{Namespace: namespace, Name: name}}
	bundle.Spec.Class = ptr.To(ClassSeed)
	return bundle
}

// Outside returns an empty bundle in the namespace of the extension, for objects in the seed that are outside the namespace of a
// control plane: the account that applies the ManagedResources in a control plane's namespace may not deploy them.
func Outside(extension, controlPlane, name string) flow.Bundle {
	return Seed(extension, controlPlane+"-"+name)
}

// Shoot returns an empty bundle in the namespace of a Shoot, for objects in the Shoot. The deletion of users' objects does not affect them.
func Shoot(namespace, name string) flow.Bundle {
	bundle := flow.Bundle{Key: flow.Key{Namespace: namespace, Name: name}}
	bundle.Spec.InjectLabels = map[string]string{constants.LabelShootNoCleanup: "true"}
	return bundle
}

// isOfShoot reports whether the resource-manager of a Shoot applies a ManagedResource.
func isOfShoot(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Spec.Class == nil }

// Emitted returns the existing bundles of an object, so that a plan can contain tombstones for those that are no longer wanted.
func (a *Actuator[T]) Emitted(ctx context.Context, object T) ([]flow.Key, error) {
	return flow.Emitted(ctx, a.deployer.emitter.Reader, a.owner(object))
}

// owner returns the owner of the bundles of an object.
func (a *Actuator[T]) owner(object T) flow.Owner {
	return flow.Owner{Flow: a.deployer.options.Name, UID: object.GetUID(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Reconcile implements [extension.Actuator].
func (a *Actuator[T]) Reconcile(ctx context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	plan, err := a.plan(ctx, object, cluster)
	if err != nil {
		return extension.Result{}, err
	}
	if len(plan.Tasks) > 0 {
		return extension.Result{}, fmt.Errorf("the plan has the task %s: plans of extensions must not have tasks", plan.Tasks[0].Name)
	}
	for i := range plan.Bundles {
		labelled := map[string]string{LabelActuator: a.name}
		for name, value := range plan.Bundles[i].Labels {
			labelled[name] = value
		}
		plan.Bundles[i].Labels = labelled
	}
	return a.emit(ctx, object, plan)
}

// Restore implements [extension.Actuator].
func (a *Actuator[T]) Restore(ctx context.Context, object T, cluster *extension.Cluster) (extension.Result, error) {
	return a.Reconcile(ctx, object, cluster)
}

// Delete implements [extension.Actuator].
func (a *Actuator[T]) Delete(ctx context.Context, object T, _ *extension.Cluster) (extension.Result, error) {
	return a.remove(ctx, object, nil)
}

// ForceDelete implements [extension.Actuator].
func (a *Actuator[T]) ForceDelete(ctx context.Context, object T, _ *extension.Cluster) (extension.Result, error) {
	return a.remove(ctx, object, a.giveUp)
}

// Migrate implements [extension.Actuator].
func (a *Actuator[T]) Migrate(ctx context.Context, object T, _ *extension.Cluster) (extension.Result, error) {
	return a.remove(ctx, object, a.keepObjects)
}
