// Package bundles has actuators that deploy ManagedResources: an extension computes a plan, and the health of its bundles decides the last
// operation.
package bundles

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Options of a [Deployer].
type Options struct {
	// Name of the extension, such as "provider-local". It is the field manager, and begins the names of its flows.
	Name string
	// Version of the program.
	Version string
	Clock   clock.PassiveClock
}

// Deployer emits the plans of all actuators of a manager.
type Deployer struct{}

// NewDeployer returns the deployer of a manager. Call it once, before the manager starts. Its cache holds ManagedResources, and the metadata
// of the Secrets of flows.
func NewDeployer(ctx context.Context, mgr manager.Manager, options Options) (*Deployer, error) {
	panic("not implemented yet")
}

// PlanFunc computes what has to exist for an object, and may write into the status of the object what the kind reports. It is called for
// every pass, and has to be pure otherwise: what it reads from clusters is read from caches. [Seed] and [Shoot] return bundles.
type PlanFunc[T extensionsv1alpha1.Object] func(ctx context.Context, object T, cluster *extension.Cluster) (flow.Plan, error)

// Actuator is an [extension.Actuator] that deploys a plan:
//
//   - Reconcile and Restore emit the plan, and are done when all bundles are applied, healthy and rolled out.
//   - Delete deletes all that was emitted, in the reverse order, and is done when it is gone.
//   - ForceDelete does the same, and has the ManagedResources of class shoot give up their objects.
//   - Migrate deletes the ManagedResources, too. Those of the Shoot (Spec.Class nil) keep their objects.
//
// It can be embedded by an actuator that does more.
type Actuator[T extensionsv1alpha1.Object] struct {
	deployer *Deployer
	flow     string
	plan     PlanFunc[T]
}

// NewActuator returns an actuator for objects of a kind and type. The name, such as "infrastructure", distinguishes it from the others of the
// extension, for good: it is in labels.
func NewActuator[T extensionsv1alpha1.Object](deployer *Deployer, name string, plan PlanFunc[T]) *Actuator[T] {
	panic("not implemented yet")
}

// Sources bring objects back when their bundles change. They are for [extension.Options.Sources].
func (a *Actuator[T]) Sources() []source.Source { panic("not implemented yet") }

// Seed returns an empty bundle of a namespace, for objects in the seed.
func Seed(namespace, name string) flow.Bundle { panic("not implemented yet") }

// Shoot returns an empty bundle of a namespace, for objects in the Shoot that this is the control plane of.
func Shoot(namespace, name string) flow.Bundle { panic("not implemented yet") }
