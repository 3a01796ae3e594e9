package webhookserver

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ClientConfig returns the address at which an API server reaches the webhook of a path.
type ClientConfig func(path string) admissionregistrationv1.WebhookClientConfig

// AtURL returns addresses below a URL without a path. The bundle of CA certificates is in PEM.
func AtURL(url string, caBundle []byte) ClientConfig {
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url + path), CABundle: caBundle}
	}
}

// AtService returns addresses at a port of a Service. The bundle of CA certificates is in PEM, and nil if it is
// injected later.
func AtService(namespace, name string, port int32, caBundle []byte) ClientConfig {
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: caBundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: namespace, Name: name, Path: &path, Port: &port,
		}}
	}
}

// Configuration describes the webhook configurations of a program in one cluster.
type Configuration struct {
	// Meta is the metadata of both configurations.
	Meta metav1.ObjectMeta
	// NameSuffix is appended to the names of the webhooks, to make them domains.
	NameSuffix string
	// Reach returns the address of the webhook of a path.
	Reach ClientConfig
	// ReviewVersions are the accepted versions of AdmissionReview, the preferred one first.
	ReviewVersions []string
}

// Mutating returns the configuration of the mutating webhooks among webhooks. It returns nil if there are none.
func (c Configuration) Mutating(webhooks []Webhook) *admissionregistrationv1.MutatingWebhookConfiguration {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: *c.Meta.DeepCopy(),
	}
	for _, webhook := range webhooks {
		if webhook.Kind != Mutating {
			continue
		}
		calls := *webhook.Calls
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: webhook.Name + c.NameSuffix, ClientConfig: c.Reach(webhook.Path), Rules: calls.Rules,
			NamespaceSelector: calls.NamespaceSelector, ObjectSelector: calls.ObjectSelector,
			MatchConditions: calls.MatchConditions, MatchPolicy: &calls.MatchPolicy,
			FailurePolicy: &calls.FailurePolicy, TimeoutSeconds: &calls.TimeoutSeconds,
			ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: c.ReviewVersions,
		})
	}
	if len(configuration.Webhooks) == 0 {
		return nil
	}
	return configuration
}

// Validating returns the configuration of the validating webhooks among webhooks. It returns nil if there are none.
func (c Configuration) Validating(webhooks []Webhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: *c.Meta.DeepCopy(),
	}
	for _, webhook := range webhooks {
		if webhook.Kind != Validating {
			continue
		}
		calls := *webhook.Calls
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: webhook.Name + c.NameSuffix, ClientConfig: c.Reach(webhook.Path), Rules: calls.Rules,
			NamespaceSelector: calls.NamespaceSelector, ObjectSelector: calls.ObjectSelector,
			MatchConditions: calls.MatchConditions, MatchPolicy: &calls.MatchPolicy,
			FailurePolicy: &calls.FailurePolicy, TimeoutSeconds: &calls.TimeoutSeconds,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: c.ReviewVersions,
		})
	}
	if len(configuration.Webhooks) == 0 {
		return nil
	}
	return configuration
}
