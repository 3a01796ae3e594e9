// Package workerpool resolves the worker pools of a Shoot. A pool is one value, computed once from the Shoot and its
// CloudProfile, and everything that concerns its nodes is a function of it: the OperatingSystemConfigs, the entry in the Worker,
// the labels of nodes, and the key that decides whether nodes are replaced.
package workerpool

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// defaultArchitecture is the architecture of machines that name none (Gardener).
const defaultArchitecture = "amd64"

// Pool is a worker pool of a Shoot with all values that its nodes depend on.
type Pool struct {
	// Worker is the declaration of the pool, Region the region of the Shoot.
	Worker *corev1beta1.Worker
	Region string
	// Version is the version of kubelet, without a "v".
	Version *semver.Version
	// Kubelet are the settings of kubelet: those of the pool if it has any, otherwise those of the Shoot.
	Kubelet corev1beta1.KubeletConfig
	// MachineType is the machine type in the CloudProfile; nil if the CloudProfile does not have it.
	MachineType *corev1beta1.MachineType
	// CRI is the container runtime interface.
	CRI corev1beta1.CRIName
	// NodeLocalDNS is set if nodes have a DNS cache. NodeLocalDNSInKubelet is set if kubelet must know its address, so that a
	// change replaces the nodes.
	NodeLocalDNS, NodeLocalDNSInKubelet bool
	// CAInitiated and KeyInitiated are when the last rotations of the authorities and of the service account key began for
	// this pool; nil for never.
	CAInitiated, KeyInitiated *metav1.Time
}

// Of returns the pools of a Shoot with defaults, in its order. It collects the errors of all pools, each with the path of
// its field.
func Of(shoot *corev1beta1.Shoot, profile *corev1beta1.CloudProfile) ([]Pool, error) {
	var pools []Pool
	var errs []error
	for i := range shoot.Spec.Provider.Workers {
		pool, err := poolOf(shoot, profile, &shoot.Spec.Provider.Workers[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.provider.workers[%d]: %w", i, err))
		}
		pools = append(pools, pool)
	}
	return pools, errors.Join(errs...)
}

func poolOf(shoot *corev1beta1.Shoot, profile *corev1beta1.CloudProfile, worker *corev1beta1.Worker) (Pool, error) {
	pool := Pool{
		Worker: worker, Region: shoot.Spec.Region, CRI: corev1beta1.CRINameContainerD,
		Kubelet:      ptr.Deref(shoot.Spec.Kubernetes.Kubelet, corev1beta1.KubeletConfig{}),
		NodeLocalDNS: nodeLocalDNS(shoot),
	}
	if worker.CRI != nil && worker.CRI.Name != "" {
		pool.CRI = worker.CRI.Name
	}
	text := shoot.Spec.Kubernetes.Version
	if own := worker.Kubernetes; own != nil {
		text = ptr.Deref(own.Version, text)
		if own.Kubelet != nil {
			pool.Kubelet = *own.Kubelet
		}
	}
	if image := worker.Machine.Image; image == nil || ptr.Deref(image.Version, "") == "" {
		return pool, errors.New("machine.image has no version: set it, or a default in the CloudProfile")
	}
	var err error
	if pool.Version, err = semver.NewVersion(text); err != nil {
		return pool, fmt.Errorf("the version of Kubernetes %q: %w", text, err)
	}
	if profile != nil {
		types := profile.Spec.MachineTypes
		if at := slices.IndexFunc(types, func(one corev1beta1.MachineType) bool { return one.Name == worker.Machine.Type }); at >= 0 {
			pool.MachineType = &types[at]
		}
	}
	pool.NodeLocalDNSInKubelet = pool.NodeLocalDNS && (pool.Version.LessThan(cacheWithoutKubelet) || usesIPVS(shoot))
	pool.CAInitiated, pool.KeyInitiated = initiations(shoot, worker.Name)
	return pool, nil
}

// cacheWithoutKubelet is the first version of Kubernetes with which the DNS cache of a node needs no setting of kubelet, unless
// kube-proxy uses IPVS (Gardener).
var cacheWithoutKubelet = semver.MustParse("1.34.0")

func nodeLocalDNS(shoot *corev1beta1.Shoot) bool {
	components := shoot.Spec.SystemComponents
	return components != nil && components.NodeLocalDNS != nil && components.NodeLocalDNS.Enabled
}

func usesIPVS(shoot *corev1beta1.Shoot) bool {
	proxy := shoot.Spec.Kubernetes.KubeProxy
	return proxy != nil && ptr.Deref(proxy.Mode, "") == corev1beta1.ProxyModeIPVS
}

// initiations returns when the rotations began for a pool. Pools that wait for their rollout keep the time before.
func initiations(shoot *corev1beta1.Shoot, pool string) (authorities, key *metav1.Time) {
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return nil, nil
	}
	rotation := shoot.Status.Credentials.Rotation
	if of := rotation.CertificateAuthorities; of != nil {
		authorities = initiation(of.LastInitiationTime, of.PendingWorkersRollouts, pool)
	}
	if of := rotation.ServiceAccountKey; of != nil {
		key = initiation(of.LastInitiationTime, of.PendingWorkersRollouts, pool)
	}
	return authorities, key
}

func initiation(last *metav1.Time, pending []corev1beta1.PendingWorkersRollout, pool string) *metav1.Time {
	for _, one := range pending {
		if one.Name == pool {
			return one.LastInitiationTime
		}
	}
	return last
}

// Architecture returns the architecture of the pool's machines.
func (p Pool) Architecture() string {
	return ptr.Deref(p.Worker.Machine.Architecture, defaultArchitecture)
}

// SystemComponents reports whether system components may run on the nodes.
func (p Pool) SystemComponents() bool {
	return p.Worker.SystemComponents == nil || p.Worker.SystemComponents.Allow
}

// InPlace reports whether the nodes are updated without being replaced.
func (p Pool) InPlace() bool {
	strategy := ptr.Deref(p.Worker.UpdateStrategy, corev1beta1.AutoRollingUpdate)
	return strategy == corev1beta1.AutoInPlaceUpdate || strategy == corev1beta1.ManualInPlaceUpdate
}

// Labels returns the labels of the pool's nodes.
func (p Pool) Labels() map[string]string {
	labels := map[string]string{}
	for key, value := range p.Worker.Labels {
		labels[key] = value
	}
	labels["node.kubernetes.io/role"] = "node"
	labels["kubernetes.io/arch"] = p.Architecture()
	labels[constants.LabelNodeLocalDNSEnabled] = fmt.Sprint(p.NodeLocalDNS)
	labels[constants.LabelWorkerPool] = p.Worker.Name
	labels[constants.LabelWorkerPoolDeprecated] = p.Worker.Name
	labels[constants.LabelWorkerPoolSystemComponents] = fmt.Sprint(p.SystemComponents())
	labels[constants.LabelWorkerPoolNodeAgentSecretName] = p.Key()
	labels[constants.LabelWorkerCRIName] = string(p.CRI)
	if p.Worker.CRI != nil {
		for _, runtime := range p.Worker.CRI.ContainerRuntimes {
			labels[constants.LabelPrefixContainerRuntimeWorker+runtime.Type] = "true"
		}
	}
	return labels
}

// LabelsOfKubelet returns the labels with which kubelet registers a node: those of the pool, and the region.
func (p Pool) LabelsOfKubelet() map[string]string {
	labels := p.Labels()
	labels[corev1.LabelTopologyRegion] = p.Region
	return labels
}
