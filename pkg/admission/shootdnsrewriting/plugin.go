// Package shootdnsrewriting is an admission plugin of the garden's API. New Shoots get suffixes of names that their DNS does not
// look up in the cluster first.
package shootdnsrewriting

import (
	"context"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{Name: "ShootDNSRewriting", Off: true, Configure: configure}

// configuration is the kind Configuration of shootdnsrewriting.admission.gardener.cloud/v1alpha1.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	// CommonSuffixes are the suffixes that each new Shoot gets.
	CommonSuffixes []string `json:"commonSuffixes,omitempty"`
}

func configure(reader io.Reader) ([]admission.Rule, error) {
	config := &configuration{}
	if err := admission.Decode(reader, config); err != nil {
		return nil, err
	}
	return []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreate, Admit: admission.On(config.admit)},
	}, nil
}

func (c *configuration) admit(_ context.Context, _ *admission.Request, _ *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if len(c.CommonSuffixes) == 0 || len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	if shoot.Spec.SystemComponents == nil {
		shoot.Spec.SystemComponents = &gardencorev1beta1.SystemComponents{}
	}
	components := shoot.Spec.SystemComponents
	if components.CoreDNS == nil {
		components.CoreDNS = &gardencorev1beta1.CoreDNS{}
	}
	if components.CoreDNS.Rewriting == nil {
		components.CoreDNS.Rewriting = &gardencorev1beta1.CoreDNSRewriting{}
	}
	rewriting := components.CoreDNS.Rewriting
	for _, suffix := range c.CommonSuffixes {
		if !slices.Contains(rewriting.CommonSuffixes, suffix) {
			rewriting.CommonSuffixes = append(rewriting.CommonSuffixes, suffix)
		}
	}
	return nil
}
