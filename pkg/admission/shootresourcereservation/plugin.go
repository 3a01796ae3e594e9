// Package shootresourcereservation is an admission plugin of the garden's API. Nodes keep resources for the kubelet and the
// container runtime, either the same for each Shoot or by the machine type of each pool.
package shootresourcereservation

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{Name: "ShootResourceReservation", Configure: configure}

// configuration is the kind Configuration of shootresourcereservation.admission.gardener.cloud/v1alpha1.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	// UseGKEFormula reserves by machine type.
	UseGKEFormula bool `json:"useGKEFormula,omitempty"`
	// Selector selects the Shoots with reservations by machine type. Default: all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// plugin has the configuration in the form in which it is used.
type plugin struct {
	byMachineType bool
	selector      labels.Selector
}

func configure(reader io.Reader) ([]admission.Rule, error) {
	config := &configuration{}
	if err := admission.Decode(reader, config); err != nil {
		return nil, err
	}
	p := &plugin{byMachineType: config.UseGKEFormula, selector: labels.Everything()}
	if config.Selector != nil {
		var err error
		if p.selector, err = metav1.LabelSelectorAsSelector(config.Selector); err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
	}
	return []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreateOrUpdate, Admit: admission.On(p.admit)},
	}, nil
}

// admit fills the reservations of new Shoots and new pools, and those that an update removes. A stored Shoot without
// reservations stays so, because its nodes would be replaced.
func (p *plugin) admit(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil || len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	global := reservedBy(shoot.Spec.Kubernetes.Kubelet)
	if p.byMachineType && global == nil && p.selector.Matches(labels.Set(shoot.Labels)) {
		return p.fillPools(ctx, request, garden, shoot, old)
	}
	values := static()
	if old != nil {
		values = only(values, reservedBy(old.Spec.Kubernetes.Kubelet))
	}
	fill(&shoot.Spec.Kubernetes.Kubelet, values)
	return nil
}

func (p *plugin) fillPools(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	var profile *gardencorev1beta1.CloudProfileSpec
	var errs field.ErrorList
	for i := range shoot.Spec.Provider.Workers {
		pool := &shoot.Spec.Provider.Workers[i]
		if pool.Kubernetes == nil {
			pool.Kubernetes = &gardencorev1beta1.WorkerKubernetes{}
		}
		wanted := missing(pool, old)
		if wanted == (gardencorev1beta1.KubeletConfigReserved{}) {
			if *pool.Kubernetes == (gardencorev1beta1.WorkerKubernetes{}) {
				pool.Kubernetes = nil
			}
			continue
		}
		if profile == nil {
			found, err := garden.ProfileOf(ctx, shoot.Namespace, &shoot.Spec)
			if err != nil {
				return err
			}
			profile = found.Spec
		}
		machine := cloudprofile.FindMachineType(profile, pool.Machine.Type)
		if machine == nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "provider", "workers").Index(i).Child("machine", "type"), pool.Machine.Type,
				"the CloudProfile does not have it"))
			continue
		}
		fill(&pool.Kubernetes.Kubelet, only(byMachineType(machine), &wanted))
	}
	return request.Invalid(errs)
}

// missing returns the values that a pool lacks and must get: all for a new pool, else those that the stored one has.
func missing(pool *gardencorev1beta1.Worker, old *gardencorev1beta1.Shoot) gardencorev1beta1.KubeletConfigReserved {
	wanted := static()
	if old != nil {
		if before := admission.PoolOf(&old.Spec, pool.Name); before != nil {
			if before.Kubernetes == nil {
				return gardencorev1beta1.KubeletConfigReserved{}
			}
			wanted = only(wanted, reservedBy(before.Kubernetes.Kubelet))
		}
	}
	if own := reservedBy(pool.Kubernetes.Kubelet); own != nil {
		wanted = without(wanted, own)
	}
	return wanted
}

func reservedBy(kubelet *gardencorev1beta1.KubeletConfig) *gardencorev1beta1.KubeletConfigReserved {
	if kubelet == nil {
		return nil
	}
	return kubelet.KubeReserved
}

// fill sets the values that a kubelet lacks.
func fill(kubelet **gardencorev1beta1.KubeletConfig, values gardencorev1beta1.KubeletConfigReserved) {
	if own := reservedBy(*kubelet); own != nil {
		values = without(values, own)
	}
	if values == (gardencorev1beta1.KubeletConfigReserved{}) {
		return
	}
	if *kubelet == nil {
		*kubelet = &gardencorev1beta1.KubeletConfig{}
	}
	if (*kubelet).KubeReserved == nil {
		(*kubelet).KubeReserved = &gardencorev1beta1.KubeletConfigReserved{}
	}
	own := (*kubelet).KubeReserved
	for _, each := range []struct{ to, from **resource.Quantity }{
		{&own.CPU, &values.CPU}, {&own.Memory, &values.Memory}, {&own.PID, &values.PID},
	} {
		if *each.to == nil {
			*each.to = *each.from
		}
	}
}
