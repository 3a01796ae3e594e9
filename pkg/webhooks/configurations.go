package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The names of the webhook configurations, as in gardener-resource-manager.
const (
	nameOfConfigurations = "gardener-resource-manager"
	shootSuffix          = "-shoot"
	// labelRemediation excludes the configurations from a Gardener controller that changes timeouts.
	labelRemediation = "remediation.webhook.shoot.gardener.cloud/exclude"
)

// ClientConfig returns the address at which an API server reaches the webhook of a path.
type ClientConfig func(path string) admissionregistrationv1.WebhookClientConfig

// AtURL returns addresses below a URL without a path. The bundle of CA certificates is in PEM.
func AtURL(url string, caBundle []byte) ClientConfig {
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url + path), CABundle: caBundle}
	}
}

// AtService returns addresses at port 443 of a Service. The bundle of CA certificates is in PEM, and nil if it is
// injected later.
func AtService(namespace, name string, caBundle []byte) ClientConfig {
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: caBundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: namespace, Name: name, Path: &path, Port: ptr.To[int32](443),
		}}
	}
}

// MutatingConfiguration returns the configuration of the mutating webhooks among webhooks. It returns nil if there are
// none.
func MutatingConfiguration(
	webhooks []Webhook, placement Placement, reach ClientConfig,
) *admissionregistrationv1.MutatingWebhookConfiguration {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metaOf(placement),
	}
	for _, webhook := range called(webhooks, Mutating, placement) {
		calls := webhook.Calls
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: webhook.nameFor(placement), ClientConfig: reach(webhook.Path), Rules: calls.Rules,
			NamespaceSelector: calls.NamespaceSelector(placement), ObjectSelector: calls.ObjectSelector(placement),
			MatchConditions: calls.MatchConditions, MatchPolicy: &calls.MatchPolicy,
			FailurePolicy: &calls.FailurePolicy, TimeoutSeconds: &calls.TimeoutSeconds,
			ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: reviewVersions(),
		})
	}
	if len(configuration.Webhooks) == 0 {
		return nil
	}
	return configuration
}

// ValidatingConfiguration returns the configuration of the validating webhooks among webhooks. It returns nil if there
// are none.
func ValidatingConfiguration(
	webhooks []Webhook, placement Placement, reach ClientConfig,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metaOf(placement),
	}
	for _, webhook := range called(webhooks, Validating, placement) {
		calls := webhook.Calls
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: webhook.nameFor(placement), ClientConfig: reach(webhook.Path), Rules: calls.Rules,
			NamespaceSelector: calls.NamespaceSelector(placement), ObjectSelector: calls.ObjectSelector(placement),
			MatchConditions: calls.MatchConditions, MatchPolicy: &calls.MatchPolicy,
			FailurePolicy: &calls.FailurePolicy, TimeoutSeconds: &calls.TimeoutSeconds,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: reviewVersions(),
		})
	}
	if len(configuration.Webhooks) == 0 {
		return nil
	}
	return configuration
}

// called returns the webhooks of a kind that apply to a placement.
func called(webhooks []Webhook, kind Kind, placement Placement) []Webhook {
	var called []Webhook
	for _, webhook := range webhooks {
		if webhook.Kind == kind && (!placement.Shoot || !webhook.SeedOnly) {
			called = append(called, webhook)
		}
	}
	return called
}

func metaOf(placement Placement) metav1.ObjectMeta {
	name := nameOfConfigurations
	if placement.Shoot {
		name += shootSuffix
	}
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{labelRemediation: "true"}}
}

// reviewVersions are the versions of AdmissionReview that controller-runtime supports.
func reviewVersions() []string { return []string{"v1beta1", "v1"} }
