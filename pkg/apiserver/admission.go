package apiserver

import (
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	quotageneric "k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	gardenadmission "github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/backupbucketvalidator"
	"github.com/trellis-k8s/trellis/pkg/admission/bastion"
	"github.com/trellis-k8s/trellis/pkg/admission/clusteropenidconnectpreset"
	"github.com/trellis-k8s/trellis/pkg/admission/controllerregistrationresources"
	"github.com/trellis-k8s/trellis/pkg/admission/customverbauthorizer"
	"github.com/trellis-k8s/trellis/pkg/admission/deletionconfirmation"
	"github.com/trellis-k8s/trellis/pkg/admission/extensionlabels"
	"github.com/trellis-k8s/trellis/pkg/admission/extensionvalidator"
	"github.com/trellis-k8s/trellis/pkg/admission/finalizerremoval"
	"github.com/trellis-k8s/trellis/pkg/admission/managedseed"
	"github.com/trellis-k8s/trellis/pkg/admission/managedseedshoot"
	"github.com/trellis-k8s/trellis/pkg/admission/namespacedcloudprofilevalidator"
	"github.com/trellis-k8s/trellis/pkg/admission/openidconnectpreset"
	"github.com/trellis-k8s/trellis/pkg/admission/projectmutator"
	"github.com/trellis-k8s/trellis/pkg/admission/resourcereferencemanager"
	"github.com/trellis-k8s/trellis/pkg/admission/seedmutator"
	"github.com/trellis-k8s/trellis/pkg/admission/seedvalidator"
	"github.com/trellis-k8s/trellis/pkg/admission/shootdns"
	"github.com/trellis-k8s/trellis/pkg/admission/shootdnsrewriting"
	"github.com/trellis-k8s/trellis/pkg/admission/shootexposureclass"
	"github.com/trellis-k8s/trellis/pkg/admission/shootmanagedseed"
	"github.com/trellis-k8s/trellis/pkg/admission/shootmutator"
	"github.com/trellis-k8s/trellis/pkg/admission/shootnodelocaldnsenabledbydefault"
	"github.com/trellis-k8s/trellis/pkg/admission/shootquotavalidator"
	"github.com/trellis-k8s/trellis/pkg/admission/shootresourcereservation"
	"github.com/trellis-k8s/trellis/pkg/admission/shoottolerationrestriction"
	"github.com/trellis-k8s/trellis/pkg/admission/shootvalidator"
	"github.com/trellis-k8s/trellis/pkg/admission/shootvpaenabledbydefault"
)

// row is an admission plugin of the garden's API, and why it exists.
type row struct {
	gardenadmission.Plugin
	why string
}

// plugins are the admission plugins of the garden's API, in the order in which they run. All of them change objects before
// the first one validates.
var plugins = []row{
	{resourcereferencemanager.Plugin, "an object refers to what exists and its user may read, and what others use stays"},
	{extensionvalidator.Plugin, "no object waits for an extension that does not exist"},
	{extensionlabels.Plugin, "webhooks of extensions select the objects that they check"},
	{shoottolerationrestriction.Plugin, "Shoots accept only the taints of Seeds that their Project may use"},
	{shootexposureclass.Plugin, "a Shoot runs on Seeds that can expose it as its class says"},
	{shootdns.Plugin, "each Shoot has a domain, and none takes that of another"},
	{shootmanagedseed.Plugin, "a Shoot that is a Seed keeps what the Seed needs"},
	{shootnodelocaldnsenabledbydefault.Plugin, "operators can give each new cluster the DNS cache of nodes"},
	{shootdnsrewriting.Plugin, "operators can save new clusters useless look-ups of names"},
	{shootquotavalidator.Plugin, "clusters of credentials with quotas stay within them"},
	{shootmutator.Plugin, "users may leave versions, images and networks to the garden"},
	{shootvalidator.Plugin, "a Shoot uses only what its CloudProfile, its Seed and its Project allow"},
	{seedvalidator.Plugin, "a Seed keeps what its Shoots use"},
	{seedmutator.Plugin, "gardenlets select their Seed by a label that no one can set wrongly"},
	{controllerregistrationresources.Plugin, "two extensions must not handle the same object"},
	{namespacedcloudprofilevalidator.Plugin, "what a project adds to a CloudProfile fits it, and overrides only expirations"},
	{projectmutator.Plugin, "each Project has an owner among its members"},
	{deletionconfirmation.Plugin, "no one deletes a cluster, a project or a state by accident, and some only with a second person"},
	{finalizerremoval.Plugin, "no one leaves a control plane behind, or takes the credentials that its removal needs"},
	{openidconnectpreset.Plugin, "the new clusters of a project trust the issuer of its users"},
	{clusteropenidconnectpreset.Plugin, "operators can give each new cluster an issuer that it trusts"},
	{customverbauthorizer.Plugin, "some fields need a right of their own"},
	{shootvpaenabledbydefault.Plugin, "operators can give each new cluster the vertical pod autoscaler"},
	{shootresourcereservation.Plugin, "Pods do not take the resources of the node's own programs"},
	{managedseed.Plugin, "the Seed in a cluster is configured like the cluster"},
	{managedseedshoot.Plugin, "a cluster with control planes of others is not deleted"},
	{bastion.Plugin, "the Seed of a cluster finds the bastions for it"},
	{backupbucketvalidator.Plugin, "credentials of one infrastructure are useless in another"},
}

// registerAdmission adds the admission plugins of the garden to the options. They run after the plugin that checks
// namespaces and before policies and webhooks. The quota plugin runs last, because it must count only admitted objects.
func registerAdmission(options *genericoptions.RecommendedOptions, stored storages) {
	order := []string{}
	for _, row := range plugins {
		gardenadmission.Register(options.Admission.Plugins, row.Plugin)
		order = append(order, row.Name)
		if row.Off {
			options.Admission.DefaultOffPlugins.Insert(row.Name)
		}
	}
	resourcequota.Register(options.Admission.Plugins)
	options.Admission.DefaultOffPlugins.Insert(mutatingpolicy.PluginName) // as in Gardener
	order = append(slices.Insert(options.Admission.RecommendedPluginOrder, 1, order...), resourcequota.PluginName)
	options.Admission.RecommendedPluginOrder = order
	options.ExtraAdmissionInitializers = func(config *server.RecommendedConfig) ([]admission.PluginInitializer, error) {
		garden, fill, err := newGarden(config, stored)
		if err != nil {
			return nil, err
		}
		if err := config.AddPostStartHook("gardener-admission-facts", fill); err != nil {
			return nil, fmt.Errorf("set up the facts of admission plugins: %w", err)
		}
		return []admission.PluginInitializer{
			quotaInitializer{quotageneric.NewConfiguration(nil, nil)}, gardenadmission.Initializer{Garden: garden},
		}, nil
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
