// Package containerruntime provides a container runtime on the nodes of a pool as a RuntimeClass.
package containerruntime

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// FlowName distinguishes the ManagedResources of ContainerRuntimes from others of the extension.
const FlowName = "containerruntime"

// handler is the name of the runtime in containerd's configuration on machines.
const handler = "runc"

// New returns the actuator.
func New(deployer *bundles.Deployer) *bundles.Actuator[*extensionsv1alpha1.ContainerRuntime] {
	plan := func(_ context.Context, object *extensionsv1alpha1.ContainerRuntime, _ *extension.Cluster) (flow.Plan, error) {
		return Plan(object), nil
	}
	return bundles.NewActuator(deployer, FlowName, plan)
}

// Plan returns the bundle of a ContainerRuntime: a RuntimeClass for the nodes of the pool.
func Plan(object *extensionsv1alpha1.ContainerRuntime) flow.Plan {
	bundle := bundles.Shoot(object.Namespace, "extension-containerruntime-"+object.Name)
	bundle.Objects = []client.Object{&nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: local.Type + "-" + object.Spec.WorkerPool.Name},
		Handler:    handler,
		Scheduling: &nodev1.Scheduling{NodeSelector: object.Spec.WorkerPool.Selector.MatchLabels},
	}}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}
}
