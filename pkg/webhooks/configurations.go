package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The names of the configurations (gardener-resource-manager).
const (
	nameOfConfigurations = "gardener-resource-manager"
	shootSuffix          = "-shoot"
	// labelRemediation keeps a controller of gardener from changing the time-outs.
	labelRemediation = "remediation.webhook.shoot.gardener.cloud/exclude"
)

// ClientConfig returns the address of the webhook of a path for an API server.
type ClientConfig func(path string) admissionregistrationv1.WebhookClientConfig

// AtURL reaches webhooks at a URL without a path, trusting a bundle of certificates in PEM.
func AtURL(url string, caBundle []byte) ClientConfig {
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url + path), CABundle: caBundle}
	}
}

// AtService reaches webhooks at port 443 of a Service, trusting a bundle of certificates in PEM; nil if it is injected later.
func AtService(namespace, name string, caBundle []byte) ClientConfig {
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: caBundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: namespace, Name: name, Path: &path, Port: ptr.To[int32](443),
		}}
	}
}

// MutatingConfiguration has an API server call the mutating webhooks among some rows of the table; nil without any.
func MutatingConfiguration(webhooks []Webhook, placement Placement, reach ClientConfig) *admissionregistrationv1.MutatingWebhookConfiguration {
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

// ValidatingConfiguration has an API server call the validating webhooks among some rows of the table; nil without any.
func ValidatingConfiguration(webhooks []Webhook, placement Placement, reach ClientConfig) *admissionregistrationv1.ValidatingWebhookConfiguration {
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

// called returns the webhooks of a kind that an API server is to call.
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

// reviewVersions are those that controller-runtime reads.
func reviewVersions() []string { return []string{"v1beta1", "v1"} }
