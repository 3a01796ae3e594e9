package controlplane

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/extension/webhook"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Names of the webhooks, which are Gardener's.
const (
	// NameShoots is the name of [Shoots].
	NameShoots = "controlplane"
	// NameExposure is the name of [Exposure].
	NameExposure = "controlplaneexposure"
)

// Options are the options of the webhooks of an [Ensurer].
type Options struct {
	// Provider is the type of the infrastructure, such as "local".
	Provider string
	// Reader reads Clusters. It may be a cache.
	Reader client.Reader
}

// Shoots returns the webhook "controlplane" for Shoots on this infrastructure. It is called for all objects of an
// [Ensurer] with the label provider.extensions.gardener.cloud/mutated-by-controlplane-webhook=true, in namespaces with
// shoot.gardener.cloud/provider=<provider>. While it is not available, these objects cannot be written, because a control
// plane without the changes for the infrastructure could cause damage.
func Shoots(ensurer Ensurer, options Options) webhook.Webhook {
	return webhook.Webhook{
		Name: NameShoots, NamespaceSelector: webhook.ShootProvider(options.Provider), ObjectSelector: webhook.ControlPlaneObjects(),
		Rules: []admissionregistrationv1.RuleWithOperations{
			webhook.Writes("", "v1", "services"),
			webhook.Writes("apps", "v1", "deployments", "statefulsets"),
			webhook.Writes("autoscaling.k8s.io", "v1", "verticalpodautoscalers"),
			webhook.Writes("druid.gardener.cloud", "v1alpha1", "etcds"),
			webhook.Writes("extensions.gardener.cloud", "v1alpha1", "operatingsystemconfigs"),
		},
		Handler: handler(ensurer, options),
	}
}

// Exposure returns the webhook "controlplaneexposure" for Shoots in seeds on this infrastructure. It is called for
// Services, Deployments, StatefulSets and Etcds with that label, in namespaces with
// seed.gardener.cloud/provider=<provider>.
func Exposure(ensurer Ensurer, options Options) webhook.Webhook {
	return webhook.Webhook{
		Name: NameExposure, NamespaceSelector: webhook.SeedProvider(options.Provider), ObjectSelector: webhook.ControlPlaneObjects(),
		Rules: []admissionregistrationv1.RuleWithOperations{
			webhook.Writes("", "v1", "services"),
			webhook.Writes("apps", "v1", "deployments", "statefulsets"),
			webhook.Writes("druid.gardener.cloud", "v1alpha1", "etcds"),
		},
		Handler: handler(ensurer, options),
	}
}

// handler returns the handler of both webhooks.
func handler(ensurer Ensurer, options Options) *admission.Webhook {
	return &admission.Webhook{Handler: admit.ByKind(mutator{ensurer: ensurer, reader: options.Reader}.handlers())}
}
