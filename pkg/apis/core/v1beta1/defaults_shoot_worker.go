package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// setDefaultsWorker sets the defaults of a worker pool, for an infrastructure of the given type.
func setDefaultsWorker(worker *Worker, providerType string) {
	defaulting.Pointer(&worker.UpdateStrategy, AutoRollingUpdate)
	switch *worker.UpdateStrategy {
	case AutoInPlaceUpdate:
		defaulting.Pointer(&worker.MaxSurge, intstr.FromInt32(0))
		defaulting.Pointer(&worker.MaxUnavailable, intstr.FromInt32(1))
	case ManualInPlaceUpdate: // the user decides how many nodes are updated at a time
	default:
		defaulting.Pointer(&worker.MaxSurge, intstr.FromInt32(1))
		defaulting.Pointer(&worker.MaxUnavailable, intstr.FromInt32(0))
	}
	if IsUpdateStrategyInPlace(worker.UpdateStrategy) {
		defaulting.Pointer(&defaulting.Object(&worker.MachineControllerManagerSettings).DisableHealthTimeout, true)
	}
	defaulting.Value(&defaulting.Object(&worker.CRI).Name, CRINameContainerD)
	defaulting.Pointer(&worker.SystemComponents, WorkerSystemComponents{Allow: true})
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		defaulting.Pointer(&worker.Kubernetes.Kubelet.FailSwapOn, true)
		setDefaultsMemorySwap(worker.Kubernetes.Kubelet)
	}
	if worker.ControlPlane != nil && worker.ControlPlane.Exposure != nil && worker.ControlPlane.Exposure.Extension != nil {
		defaulting.Pointer(&worker.ControlPlane.Exposure.Extension.Type, providerType)
	}
}

// IsUpdateStrategyInPlace reports whether a strategy updates nodes without replacing them.
func IsUpdateStrategyInPlace(strategy *MachineUpdateStrategy) bool {
	return strategy != nil && (*strategy == AutoInPlaceUpdate || *strategy == ManualInPlaceUpdate)
}
