package webhook

import (
	"cmp"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// check returns an error if webhooks are invalid.
func check(webhooks []Webhook) error {
	names := map[string]bool{}
	for _, one := range webhooks {
		switch {
		case one.Name == "" || one.Handler == nil || len(one.Rules) == 0:
			return fmt.Errorf("the webhook %q needs a name, rules and a handler", one.Name)
		case names[one.Name]:
			return fmt.Errorf("the name of the webhook %q is used twice", one.Name)
		case one.Target != "" && one.Target != TargetSeed && one.Target != TargetShoot:
			return fmt.Errorf("the webhook %q has the target %q: use %q or %q", one.Name, one.Target, TargetSeed, TargetShoot)
		}
		names[one.Name] = true
	}
	return nil
}

// configurations returns the configurations of a target, of both kinds. Configurations without webhooks must be deleted.
func configurations(
	webhooks []Webhook, options Options, target Target, bundle []byte,
) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	meta := metav1.ObjectMeta{Name: options.configurationName(target)}
	if target == TargetShoot {
		meta.Labels = map[string]string{constants.LabelWebhookRemediationExclude: "true"}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration",
		},
		ObjectMeta: meta,
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: *meta.DeepCopy(),
	}
	for _, one := range webhooks {
		if cmp.Or(one.Target, TargetSeed) != target {
			continue
		}
		fails := admissionregistrationv1.Fail
		if target == TargetShoot {
			fails = admissionregistrationv1.Ignore
		}
		fails = cmp.Or(one.FailurePolicy, fails)
		timeout := cmp.Or(one.TimeoutSeconds, defaultTimeout)
		name, reach := options.webhookName(one.Name), options.clientConfig(target, one.Name, bundle)
		if one.Validating {
			validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name: name, ClientConfig: reach, Rules: one.Rules, NamespaceSelector: one.NamespaceSelector, ObjectSelector: one.ObjectSelector,
				MatchConditions: one.MatchConditions,
				FailurePolicy:   &fails, TimeoutSeconds: &timeout, MatchPolicy: ptr.To(admissionregistrationv1.Exact),
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			})
			continue
		}
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: name, ClientConfig: reach, Rules: one.Rules, NamespaceSelector: one.NamespaceSelector, ObjectSelector: one.ObjectSelector,
			MatchConditions: one.MatchConditions,
			FailurePolicy:   &fails, TimeoutSeconds: &timeout, MatchPolicy: ptr.To(admissionregistrationv1.Exact),
			ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		})
	}
	return mutating, validating
}

// objectsOf returns the configurations with webhooks.
func objectsOf(
	mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration,
) []client.Object {
	var objects []client.Object
	if len(mutating.Webhooks) > 0 {
		objects = append(objects, mutating)
	}
	if len(validating.Webhooks) > 0 {
		objects = append(objects, validating)
	}
	return objects
}
