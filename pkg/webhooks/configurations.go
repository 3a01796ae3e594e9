package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// The names of the webhook configurations, as in gardener-resource-manager.
const (
	nameOfConfigurations = "gardener-resource-manager"
	shootSuffix          = "-shoot"
	// labelRemediation excludes the configurations from a Gardener controller that changes timeouts.
	labelRemediation = "remediation.webhook.shoot.gardener.cloud/exclude"
)

// MutatingConfiguration returns the configuration of the mutating webhooks among webhooks. It returns nil if there are
// none.
func MutatingConfiguration(
	webhooks []Webhook, placement Placement, reach webhookserver.ClientConfig,
) *admissionregistrationv1.MutatingWebhookConfiguration {
	return configuration(placement, reach).Mutating(called(webhooks, placement))
}

// ValidatingConfiguration returns the configuration of the validating webhooks among webhooks. It returns nil if there
// are none.
func ValidatingConfiguration(
	webhooks []Webhook, placement Placement, reach webhookserver.ClientConfig,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return configuration(placement, reach).Validating(called(webhooks, placement))
}

func configuration(placement Placement, reach webhookserver.ClientConfig) webhookserver.Configuration {
	name := nameOfConfigurations
	if placement.Shoot {
		name += shootSuffix
	}
	return webhookserver.Configuration{
		Meta:       metav1.ObjectMeta{Name: name, Labels: map[string]string{labelRemediation: "true"}},
		NameSuffix: nameSuffix, Reach: reach,
		ReviewVersions: []string{"v1beta1", "v1"}, // those that controller-runtime supports
	}
}

// called returns the admission webhooks that apply to a placement, with the selectors of this placement.
func called(webhooks []Webhook, placement Placement) []webhookserver.Webhook {
	var called []webhookserver.Webhook
	for _, webhook := range webhooks {
		if webhook.Calls == nil || placement.Shoot && webhook.SeedOnly {
			continue
		}
		calls := webhook.Calls
		called = append(called, webhookserver.Webhook{
			Name: webhook.nameFor(placement), Path: webhook.Path, Kind: webhook.Kind,
			Calls: &webhookserver.Calls{
				Rules: calls.Rules, NamespaceSelector: calls.NamespaceSelector(placement), ObjectSelector: calls.ObjectSelector(placement),
				MatchConditions: calls.MatchConditions, MatchPolicy: calls.MatchPolicy,
				FailurePolicy: calls.FailurePolicy, TimeoutSeconds: calls.TimeoutSeconds,
			},
		})
	}
	return called
}
