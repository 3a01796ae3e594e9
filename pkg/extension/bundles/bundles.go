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

// ClassSeed is the class of the resource-manager that applies to the seed. That of a Shoot has none.
const ClassSeed = "seed"

// PlanFunc computes what has to exist for an object, and may write into the status of the object what the kind reports. It is called for
// every pass, and has to be pure otherwise: what it reads from clusters is read from caches. [Seed] and [Shoot] return bundles. A bundle that
// is not in the plan any more is kept, unless the plan has a tombstone for it: see [Actuator.Emitted]. A plan has no tasks.
type PlanFunc[T extensionsv1alpha1.Object] func(ctx context.Context, object T, cluster *extension.Cluster) (flow.Plan, error)

// Actuator is an [extension.Actuator] that deploys a plan:
//
//   - Reconcile and Restore emit the plan, and are done when all bundles are applied, healthy and rolled out.
//   - Delete deletes all that was emitted, in the reverse order, and is done when it is gone.
//   - ForceDelete does the same, but the ManagedResources of the Shoot give up their objects: its API server may be gone.
//   - Migrate deletes the ManagedResources, too. Those of the Shoot keep their objects.
//
// It can be embedded by an actuator that does more.
type Actuator[T extensionsv1alpha1.Object] struct {
	deployer *Deployer
	name     string
	plan     PlanFunc[T]
}

// NewActuator returns an actuator for objects of a kind and type. The name, such as "infrastructure", distinguishes it from the others of the
// extension: it is the value of [LabelActuator].
func NewActuator[T extensionsv1alpha1.Object](deployer *Deployer, name string, plan PlanFunc[T]) *Actuator[T] {
	return &Actuator[T]{deployer: deployer, name: name, plan: plan}
}

// Sources bring objects back when their bundles change. They are for [extension.Options].
func (a *Actuator[T]) Sources() []source.Source { return []source.Source{a.deployer.source(a.name)} }

// Seed returns an empty bundle of a namespace, for objects in the seed.
func Seed(namespace, name string) flow.Bundle {
	bundle := flow.Bundle{Key: flow.Key{Namespace: namespace, Name: name}}
	bundle.Spec.Class = ptr.To(ClassSeed)
	return bundle
}

// Shoot returns an empty bundle of the namespace of a Shoot, for objects in the Shoot. They are not deleted with the content of users.
func Shoot(namespace, name string) flow.Bundle {
	bundle := flow.Bundle{Key: flow.Key{Namespace: namespace, Name: name}}
	bundle.Spec.InjectLabels = map[string]string{constants.LabelShootNoCleanup: "true"}
	return bundle
}

// isOfShoot reports whether the resource-manager of a Shoot applies a ManagedResource.
func isOfShoot(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Spec.Class == nil }

// Emitted returns the bundles that exist of an object, so that a plan can have tombstones for those that are not wanted any more.
func (a *Actuator[T]) Emitted(ctx context.Context, object T) ([]flow.Key, error) {
	return flow.Emitted(ctx, a.deployer.emitter.Reader, a.owner(object))
}

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
		return extension.Result{}, fmt.Errorf("the plan has the task %s: plans of extensions have none", plan.Tasks[0].Name)
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
