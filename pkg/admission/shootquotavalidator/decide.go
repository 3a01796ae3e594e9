package shootquotavalidator

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// The metrics of quotas besides CPU and memory.
const (
	metricGPU             corev1.ResourceName = "gpu"
	metricStorageStandard corev1.ResourceName = "storage.standard"
	metricStoragePremium  corev1.ResourceName = "storage.premium"
	metricLoadBalancer    corev1.ResourceName = "loadbalancer"
	classPremium                              = "premium"
	classStandard                             = "standard"
)

// bindingsWith returns the keys of the bindings that have a quota.
func bindingsWith(ctx context.Context, garden *admission.Garden, quota *gardencorev1beta1.Quota) (sets.Set[string], error) {
	keys, key := sets.New[string](), admission.Key(quota.Namespace, quota.Name)
	credentials, err := garden.CredentialsBindings.By(ctx, admission.CredentialsBindingsByQuota, key)
	if err != nil {
		return nil, err
	}
	for _, binding := range credentials {
		keys.Insert(admission.BindingKey(admission.KindCredentialsBinding, binding.Namespace, binding.Name))
	}
	secrets, err := garden.SecretBindings.By(ctx, admission.SecretBindingsByQuota, key)
	for _, binding := range secrets {
		keys.Insert(admission.BindingKey(admission.KindSecretBinding, binding.Namespace, binding.Name))
	}
	return keys, err
}

func isOfProject(quota *gardencorev1beta1.Quota) bool {
	return quota.Spec.Scope.APIVersion == gardencorev1beta1.SchemeGroupVersion.String() && quota.Spec.Scope.Kind == "Project"
}

// extends reports whether a request sets the time at which a Shoot ends.
func extends(shoot, old *gardencorev1beta1.Shoot) bool {
	planned, before := shoot.Annotations[constants.AnnotationShootExpirationTimestamp], ""
	if old != nil {
		before = old.Annotations[constants.AnnotationShootExpirationTimestamp]
	}
	return planned != "" && planned != before
}

// grows reports whether an update may need more resources.
func grows(spec, old *gardencorev1beta1.ShootSpec) bool {
	return admission.NginxEnabled(spec) && !admission.NginxEnabled(old) || slices.ContainsFunc(spec.Provider.Workers, func(pool gardencorev1beta1.Worker) bool {
		before := admission.PoolOf(old, pool.Name)
		return before == nil || pool.Machine.Type != before.Machine.Type || pool.Maximum != before.Maximum || !equality.Semantic.DeepEqual(pool.Volume, before.Volume)
	})
}

// addUsage adds what the pools of a Shoot use at their largest, and its load balancers.
func addUsage(used corev1.ResourceList, spec *gardencorev1beta1.ShootSpec, profile *gardencorev1beta1.CloudProfileSpec) error {
	for i := range spec.Provider.Workers {
		pool := &spec.Provider.Workers[i]
		j := slices.IndexFunc(profile.MachineTypes, func(one gardencorev1beta1.MachineType) bool { return one.Name == pool.Machine.Type })
		if j < 0 {
			return fmt.Errorf("the CloudProfile has no machine type %q", pool.Machine.Type)
		}
		machine := &profile.MachineTypes[j]
		add(used, corev1.ResourceCPU, machine.CPU, pool.Maximum)
		add(used, metricGPU, machine.GPU, pool.Maximum)
		add(used, corev1.ResourceMemory, machine.Memory, pool.Maximum)
		metric, size, err := volumeOf(pool, machine, profile)
		if err != nil {
			return err
		}
		if metric != "" {
			add(used, metric, size, pool.Maximum)
		}
	}
	balancers := int32(1)
	if admission.NginxEnabled(spec) {
		balancers++
	}
	add(used, metricLoadBalancer, resource.MustParse("1"), balancers)
	return nil
}

// volumeOf returns the metric and the size of the volume of a machine. A machine type with storage of its own has its class, and
// its size unless the pool has one.
func volumeOf(pool *gardencorev1beta1.Worker, machine *gardencorev1beta1.MachineType, profile *gardencorev1beta1.CloudProfileSpec) (corev1.ResourceName, resource.Quantity, error) {
	size, class := resource.Quantity{}, ""
	storage := machine.Storage
	if storage != nil {
		size, class = ptr.Deref(storage.Size, size), storage.Class
	}
	if pool.Volume != nil {
		parsed, err := resource.ParseQuantity(pool.Volume.VolumeSize)
		if err != nil {
			return "", size, fmt.Errorf("the volume of the pool %q has the size %q: %w", pool.Name, pool.Volume.VolumeSize, err)
		}
		size = parsed
		if storage == nil {
			name := ptr.Deref(pool.Volume.Type, "")
			i := slices.IndexFunc(profile.VolumeTypes, func(one gardencorev1beta1.VolumeType) bool { return one.Name == name })
			if i < 0 {
				return "", size, fmt.Errorf("the CloudProfile has no volume type %q", name)
			}
			class = profile.VolumeTypes[i].Class
		}
	}
	switch class {
	case "":
		return "", size, nil
	case classStandard:
		return metricStorageStandard, size, nil
	case classPremium:
		return metricStoragePremium, size, nil
	default:
		return "", size, fmt.Errorf("volumes of the class %q cannot be counted", class)
	}
}

func add(used corev1.ResourceList, metric corev1.ResourceName, amount resource.Quantity, times int32) {
	total := used[metric]
	amount = amount.DeepCopy()
	amount.Mul(int64(times))
	total.Add(amount)
	used[metric] = total
}

// exceeds returns the metrics whose use is above the limit, in their order.
func exceeds(used, allowed corev1.ResourceList) []string {
	var exceeded []string
	for metric, limit := range allowed {
		if amount, counted := used[metric]; counted && amount.Cmp(limit) > 0 {
			exceeded = append(exceeded, string(metric))
		}
	}
	slices.Sort(exceeded)
	return exceeded
}
