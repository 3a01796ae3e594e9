package apiserver

import (
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	quotageneric "k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/trellis-k8s/trellis/pkg/admission/deletionconfirmation"
)

// plugin is an admission plugin of the garden's API.
type plugin struct {
	name     string
	register func(*admission.Plugins)
	// off is set for plugins that run only if --enable-admission-plugins names them.
	off bool
}

// plugins are the admission plugins of the garden's API, in the order in which they run.
var plugins = []plugin{
	{name: deletionconfirmation.Name, register: deletionconfirmation.Register},
}

// registerAdmission adds the admission plugins of the garden to the options. They run after the plugin that checks
// namespaces and before policies and webhooks. The quota plugin runs last, because it must count only admitted objects.
func registerAdmission(options *genericoptions.RecommendedOptions) {
	order := []string{}
	for _, plugin := range plugins {
		plugin.register(options.Admission.Plugins)
		order = append(order, plugin.name)
		if plugin.off {
			options.Admission.DefaultOffPlugins.Insert(plugin.name)
		}
	}
	resourcequota.Register(options.Admission.Plugins)
	options.Admission.DefaultOffPlugins.Insert(mutatingpolicy.PluginName) // as in Gardener
	order = append(slices.Insert(options.Admission.RecommendedPluginOrder, 1, order...), resourcequota.PluginName)
	options.Admission.RecommendedPluginOrder = order
	options.ExtraAdmissionInitializers = func(*server.RecommendedConfig) ([]admission.PluginInitializer, error) {
		return []admission.PluginInitializer{quotaInitializer{quotageneric.NewConfiguration(nil, nil)}}, nil
	}
}

// quotaInitializer makes the quota plugin count objects of every resource.
type quotaInitializer struct{ configuration quota.Configuration }

// Initialize implements admission.PluginInitializer.
func (i quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(i.configuration)
	}
}
