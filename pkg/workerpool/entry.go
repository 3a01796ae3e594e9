package workerpool

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// keyUserData is the key of the user data in the Secret that the extension for the operating system writes.
const keyUserData = "cloud_config"

// Entry returns the pool in the Worker. userData is the name of the Secret with the user data of its machines. before is the
// entry of the existing Worker, or nil: its node template stays while the machine type stays, because a change replaces
// the template of the machines (Gardener).
func (p Pool) Entry(userData string, before *extensionsv1alpha1.WorkerPool) extensionsv1alpha1.WorkerPool {
	worker, none := p.Worker, intstr.FromInt32(0)
	entry := extensionsv1alpha1.WorkerPool{
		Name: worker.Name, Minimum: worker.Minimum, Maximum: worker.Maximum,
		MaxSurge: ptr.Deref(worker.MaxSurge, none), MaxUnavailable: ptr.Deref(worker.MaxUnavailable, none),
		Labels: p.Labels(), Annotations: worker.Annotations, Taints: worker.Taints, Zones: worker.Zones,
		MachineType:         worker.Machine.Type,
		MachineImage:        extensionsv1alpha1.MachineImage{Name: worker.Machine.Image.Name, Version: ptr.Deref(worker.Machine.Image.Version, "")},
		Architecture:        ptr.To(p.Architecture()),
		KubernetesVersion:   ptr.To(p.Version.String()),
		NodeAgentSecretName: ptr.To(p.Key()),
		UserDataSecretRef:   corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: userData}, Key: keyUserData},
		ProviderConfig:      worker.ProviderConfig, KubeletDataVolumeName: worker.KubeletDataVolumeName,
		MachineControllerManagerSettings: p.machineSettings(), NodeTemplate: p.nodeTemplate(before),
		ClusterAutoscaler: autoscaler(worker.ClusterAutoscaler), Priority: worker.Priority, UpdateStrategy: worker.UpdateStrategy,
	}
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		entry.KubeletConfig = worker.Kubernetes.Kubelet
	} else if kubelet := p.Kubelet; !equality.Semantic.DeepEqual(kubelet, corev1beta1.KubeletConfig{}) {
		entry.KubeletConfig = &kubelet
	}
	if volume := worker.Volume; volume != nil {
		entry.Volume = &extensionsv1alpha1.Volume{Name: volume.Name, Type: volume.Type, Size: volume.VolumeSize, Encrypted: volume.Encrypted}
	}
	for _, volume := range worker.DataVolumes {
		entry.DataVolumes = append(entry.DataVolumes, extensionsv1alpha1.DataVolume{
			Name: volume.Name, Type: volume.Type, Size: volume.VolumeSize, Encrypted: volume.Encrypted,
		})
	}
	return entry
}

// machineSettings returns the settings for the management of machines. A creation timeout that the pool does not set is that
// of the machine type.
func (p Pool) machineSettings() *corev1beta1.MachineControllerManagerSettings {
	settings := p.Worker.MachineControllerManagerSettings.DeepCopy()
	if p.MachineType == nil || p.MachineType.MachineControllerManager == nil || p.MachineType.MachineControllerManager.MachineCreationTimeout == nil {
		return settings
	}
	if settings == nil {
		settings = &corev1beta1.MachineControllerManagerSettings{}
	}
	if settings.MachineCreationTimeout == nil {
		settings.MachineCreationTimeout = p.MachineType.MachineControllerManager.MachineCreationTimeout
	}
	return settings
}

// nodeTemplate returns what a node of the pool offers, for an autoscaler that must know it before the first node exists.
func (p Pool) nodeTemplate(before *extensionsv1alpha1.WorkerPool) *extensionsv1alpha1.NodeTemplate {
	switch {
	case before != nil && before.MachineType == p.Worker.Machine.Type && before.NodeTemplate != nil:
		return before.NodeTemplate
	case p.MachineType == nil:
		return nil
	}
	return &extensionsv1alpha1.NodeTemplate{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: p.MachineType.CPU, "gpu": p.MachineType.GPU, corev1.ResourceMemory: p.MachineType.Memory,
	}}
}

// autoscaler returns the settings of cluster-autoscaler, with numbers as decimal strings.
func autoscaler(of *corev1beta1.ClusterAutoscalerOptions) *extensionsv1alpha1.ClusterAutoscalerOptions {
	if of == nil {
		return nil
	}
	decimal := func(number *float64) *string {
		if number == nil {
			return nil
		}
		return ptr.To(strconv.FormatFloat(*number, 'f', -1, 64))
	}
	return &extensionsv1alpha1.ClusterAutoscalerOptions{
		ScaleDownUtilizationThreshold: decimal(of.ScaleDownUtilizationThreshold), ScaleDownGpuUtilizationThreshold: decimal(of.ScaleDownGpuUtilizationThreshold),
		ScaleDownUnneededTime: of.ScaleDownUnneededTime, ScaleDownUnreadyTime: of.ScaleDownUnreadyTime, MaxNodeProvisionTime: of.MaxNodeProvisionTime,
	}
}
