package shoot

import (
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// Names of the bundles of the programs that make machines and decide about their number, and of their rights in the cluster.
const (
	bundleMachines            = machinecontrollermanager.Name
	bundleMachinesRBAC        = prefixShoot + machinecontrollermanager.Name
	bundleClusterScaling      = clusterautoscaler.Name
	bundleClusterScalingShoot = prefixShoot + clusterautoscaler.Name
)

// kindWorker is the kind of the extension for machines.
const kindWorker = "Worker"

// withoutMachines returns why the control plane has no machine-controller-manager, empty if it has one. Extensions that make machines
// themselves say so in their ControllerRegistration.
func (in Inputs) withoutMachines() string {
	if !in.hasWorkers() {
		return "the Shoot has no workers"
	}
	for _, registration := range in.Registrations {
		makes := slices.ContainsFunc(registration.Spec.Resources, func(resource corev1beta1.ControllerResource) bool {
			return resource.Kind == kindWorker && resource.Type == in.Shoot.Spec.Provider.Type && ptr.Deref(resource.Primary, true)
		})
		if makes && isTrue(registration.Annotations[constants.AnnotationMachinesWithoutManager]) {
			return "the extension of ControllerRegistration " + registration.Name + " makes machines itself"
		}
	}
	return ""
}

// withoutClusterScaling returns why the control plane has no cluster-autoscaler, empty if it has one. It does not run while the machines
// are removed.
func (in Inputs) withoutClusterScaling() string {
	scaled := slices.ContainsFunc(in.Shoot.Spec.Provider.Workers, func(worker corev1beta1.Worker) bool { return worker.Maximum > worker.Minimum })
	switch {
	case in.withoutMachines() != "":
		return in.withoutMachines()
	case !scaled:
		return "no worker pool has a maximum above its minimum"
	case in.Deleting:
		return "the Shoot is being deleted"
	}
	return in.asleep()
}

// machineManagers returns the bundles of the programs that machines need.
func (in Inputs) machineManagers() []string {
	if in.withoutMachines() != "" {
		return nil
	}
	return []string{bundleMachines}
}

// machineParts returns the parts of the programs for machines in the control plane. machine-controller-manager stops after the machines are
// gone, and cluster-autoscaler before.
func (in Inputs) machineParts() []table.Part {
	if !in.hasWorkers() {
		return nil
	}
	needs := []table.Need{in.ready(bundleResourceManager), table.RolledOut(bundleAPIServer)}
	after := slices.Concat(in.inCluster(), in.extensionBundles(false), in.nodeBundles())
	return []table.Part{
		{
			Name: bundleMachines, Objects: in.machineManager, Absent: in.withoutMachines(), Removed: true,
			Unknown: table.Join(in.unknownSecrets(), in.unknownToken(bundleMachines, machinecontrollermanager.Name)),
			Needs:   needs, NeedsAsleep: []table.Need{table.Healthy(bundleWorker)}, DeletedAfter: after,
		},
		{
			Name: bundleClusterScaling, Objects: in.clusterScaling, Absent: in.withoutClusterScaling(), Removed: true, DeletedAfter: []string{},
			Unknown: table.Join(in.unknownSecrets(), in.unknownMachines(), in.unknownToken(bundleClusterScaling, clusterautoscaler.Name)),
			Needs:   append(needs, table.Applied(bundleMachines)),
		},
	}
}

// machineRows returns the rights of these programs in the cluster.
func (in Inputs) machineRows() []systemRow {
	return []systemRow{
		{name: bundleMachinesRBAC, objects: in.machineManagerRBAC, absent: in.withoutMachines()},
		{name: bundleClusterScalingShoot, objects: in.clusterScalingRBAC, absent: in.withoutClusterScaling(), unknown: in.unknownMachines()},
	}
}

// unknownMachines reports that the extension has not reported its sets of machines.
func (in Inputs) unknownMachines() string {
	switch {
	case in.withoutClusterScaling() != "":
		return ""
	case in.unrestoredMachines() != "":
		return in.unrestoredMachines()
	case len(in.Machines.Deployments) > 0:
		return ""
	}
	return "the extension for machines has not reported its sets of machines"
}

func (in Inputs) machineManager() ([]client.Object, error) {
	image, err := in.image(machinecontrollermanager.Image)
	if err != nil {
		return nil, err
	}
	values := machinecontrollermanager.Values{
		Namespace: in.Namespace, Image: image, Replicas: in.replicas(1), Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
		VerticalPodAutoscaler: in.autoscaling(),
	}
	if in.unrestoredMachines() != "" { // the extension starts it once it has restored the objects for the machines
		values.Replicas, values.PreserveReplicas = 0, true
	}
	return machinecontrollermanager.Objects(values)
}

func (in Inputs) machineManagerRBAC() ([]client.Object, error) {
	return machinecontrollermanager.ShootObjects(), nil
}

func (in Inputs) clusterScalingValues() clusterautoscaler.Values {
	values := clusterautoscaler.Values{
		Namespace: in.Namespace, Replicas: 1, Deployments: in.Machines.Deployments, Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
		Config:                ptr.Deref(in.Shoot.Spec.Kubernetes.ClusterAutoscaler, corev1beta1.ClusterAutoscaler{}),
		VerticalPodAutoscaler: in.autoscaling(),
	}
	if limits := in.CloudProfile.Spec.Limits; limits != nil {
		values.MaxNodes = int64(ptr.Deref(limits.MaxNodesTotal, 0))
	}
	return values
}

func (in Inputs) clusterScaling() ([]client.Object, error) {
	values := in.clusterScalingValues()
	var err error
	if values.Image, err = in.image(clusterautoscaler.Image); err != nil {
		return nil, err
	}
	return clusterautoscaler.Objects(values)
}

func (in Inputs) clusterScalingRBAC() ([]client.Object, error) {
	return clusterautoscaler.ShootObjects(in.clusterScalingValues())
}
