package shootvalidator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// providerConfig is a configuration in a format of an extension, and its field.
type providerConfig struct {
	raw  *runtime.RawExtension
	path *field.Path
}

// checkProviderConfigs refuses configurations in the internal version of an extension, which no one may store: it changes without
// notice.
func checkProviderConfigs(_ context.Context, c *change) error {
	known := map[string]bool{}
	if c.old != nil {
		for _, config := range providerConfigs(&c.old.Spec) {
			known[string(config.raw.Raw)] = true
		}
	}
	var errs field.ErrorList
	for _, config := range providerConfigs(&c.shoot.Spec) {
		if known[string(config.raw.Raw)] {
			continue
		}
		meta := &metav1.TypeMeta{}
		if json.Unmarshal(config.raw.Raw, meta) == nil && strings.HasSuffix(meta.APIVersion, "/"+runtime.APIVersionInternal) {
			errs = append(errs, field.Invalid(config.path, meta.APIVersion, fmt.Sprintf("must not be the version %s", runtime.APIVersionInternal)))
		}
	}
	return admission.Forbidden(errs)
}

// providerConfigs returns all configurations in formats of extensions.
func providerConfigs(spec *gardencorev1beta1.ShootSpec) []providerConfig {
	var all []providerConfig
	add := func(raw *runtime.RawExtension, path *field.Path) {
		if raw != nil && len(raw.Raw) > 0 {
			all = append(all, providerConfig{raw, path})
		}
	}
	root := field.NewPath("spec")
	provider := root.Child("provider")
	add(spec.Provider.InfrastructureConfig, provider.Child("infrastructureConfig"))
	add(spec.Provider.ControlPlaneConfig, provider.Child("controlPlaneConfig"))
	if spec.Networking != nil {
		add(spec.Networking.ProviderConfig, root.Child("networking", "providerConfig"))
	}
	for i := range spec.Extensions {
		add(spec.Extensions[i].ProviderConfig, root.Child("extensions").Index(i).Child("providerConfig"))
	}
	for i := range spec.Provider.Workers {
		worker, path := &spec.Provider.Workers[i], provider.Child("workers").Index(i)
		add(worker.ProviderConfig, path.Child("providerConfig"))
		if worker.Machine.Image != nil {
			add(worker.Machine.Image.ProviderConfig, path.Child("machine", "image", "providerConfig"))
		}
		if worker.CRI != nil {
			for j := range worker.CRI.ContainerRuntimes {
				add(worker.CRI.ContainerRuntimes[j].ProviderConfig, path.Child("cri", "containerRuntimes").Index(j).Child("providerConfig"))
			}
		}
	}
	return all
}
