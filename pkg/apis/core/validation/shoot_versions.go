package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation/kubernetesversion"
)

// minor returns the minor version of Kubernetes, or 0 if the version is not known.
func (c *shootContext) minor() uint {
	if c.version == nil || c.version.Major() != 1 {
		return 0
	}
	return c.version.Minor()
}

// release returns the version of Kubernetes as messages have it.
func (c *shootContext) release() string { return fmt.Sprintf("1.%d", c.minor()) }

// ofPool returns the context of a worker pool, which may have a version of its own.
func (c *shootContext) ofPool(worker *v1beta1.Worker) *shootContext {
	pool := *c
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		if parsed, err := version.ParseGeneric(*worker.Kubernetes.Version); err == nil {
			pool.version = parsed
		}
	}
	return &pool
}

// featureGates checks feature gates of a component against those of its version of Kubernetes.
func featureGates(gates map[string]bool, c *shootContext, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(gates) {
		at := path.Child(name)
		gate, found := kubernetesversion.FeatureGateOf(name)
		if !found {
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("unknown feature gate %q", name)))
			continue
		}
		if !gate.Has(c.minor()) {
			errs = append(errs, field.Forbidden(at, "not supported in Kubernetes version "+c.release()))
			continue
		}
		if value, locked := gate.Locked(c.minor()); locked && gates[name] != value {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("cannot set feature gate to %v, feature is locked to %v", gates[name], value)))
		}
	}
	return errs
}

// validateRuntimeConfig checks which API versions are switched on and off.
func validateRuntimeConfig(config map[string]bool, c *shootContext, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(config) {
		at := path.Key(key)
		api, found := kubernetesversion.APIOf(key)
		switch {
		case !found:
			errs = append(errs, field.Invalid(at, key, fmt.Sprintf("unknown API group version %q", key)))
		case !api.Has(c.minor()):
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("API group version %q is not supported in Kubernetes version %s", key, c.release())))
		case !config[key] && (api.Required || api.RequiredByNodes && !c.workerless):
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("API group version %q cannot be disabled", key)))
		}
	}
	return errs
}

func validateAdmissionPlugins(plugins []v1beta1.AdmissionPlugin, c *shootContext, path *field.Path) field.ErrorList {
	errs := unique(plugins, path, "name", func(plugin v1beta1.AdmissionPlugin) string { return plugin.Name })
	for i := range plugins {
		plugin, at := &plugins[i], path.Index(i)
		errs = append(errs, notEmpty(plugin.KubeconfigSecretName, at.Child("kubeconfigSecretName"))...)
		if plugin.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "must provide a name"))
			continue
		}
		known, found := kubernetesversion.AdmissionPluginOf(plugin.Name)
		if !found {
			errs = append(errs, field.Invalid(at.Child("name"), plugin.Name, fmt.Sprintf("unknown admission plugin %q", plugin.Name)))
			continue
		}
		errs = append(errs, forbidden(!known.Has(c.minor()), at.Child("name"),
			fmt.Sprintf("admission plugin %q is not supported in Kubernetes version %s", plugin.Name, c.release()))...)
		errs = append(errs, forbidden(known.Required && ptr.Deref(plugin.Disabled, false), at.Child("disabled"),
			fmt.Sprintf("admission plugin %q cannot be disabled", plugin.Name))...)
		errs = append(errs, forbidden(!known.Configurable && isSet(plugin.Config), at.Child("config"),
			fmt.Sprintf("admission plugin %q does not support configuration", plugin.Name))...)
		if plugin.Name == "PodSecurity" && isSet(plugin.Config) {
			errs = append(errs, validatePodSecurity(plugin.Config.Raw, at.Child("config"))...)
		}
		errs = append(errs, forbidden(!known.HasKubeconfig && plugin.KubeconfigSecretName != nil, at.Child("kubeconfigSecretName"),
			fmt.Sprintf("admission plugin %q does not support configuration with external kubeconfig", plugin.Name))...)
	}
	return errs
}
