package webhook

import (
	"cmp"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
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

// configurations returns the configurations of a target, of both kinds. A configuration without webhooks is nil.
func configurations(
	webhooks []Webhook, options Options, target Target, bundle []byte,
) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	configuration := webhookserver.Configuration{
		Meta: metav1.ObjectMeta{Name: options.configurationName(target)}, NameSuffix: options.nameSuffix(),
		Reach: options.clientConfig(target, bundle), ReviewVersions: []string{"v1"},
	}
	if target == TargetShoot {
		configuration.Meta.Labels = map[string]string{constants.LabelWebhookRemediationExclude: "true"}
	}
	var rows []webhookserver.Webhook
	for _, one := range webhooks {
		if cmp.Or(one.Target, TargetSeed) == target {
			rows = append(rows, one.row(target))
		}
	}
	return configuration.Mutating(rows), configuration.Validating(rows)
}

// row returns a webhook with its defaults for a target.
func (w Webhook) row(target Target) webhookserver.Webhook {
	fails, kind := admissionregistrationv1.Fail, webhookserver.Mutating
	if target == TargetShoot {
		fails = admissionregistrationv1.Ignore
	}
	if w.Validating {
		kind = webhookserver.Validating
	}
	return webhookserver.Webhook{Name: w.Name, Path: w.path(), Kind: kind, Handler: w.Handler, Calls: &webhookserver.Calls{
		Rules: w.Rules, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
		MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: cmp.Or(w.FailurePolicy, fails),
		TimeoutSeconds: cmp.Or(w.TimeoutSeconds, defaultTimeout),
	}}
}

// objectsOf returns the configurations that are not nil.
func objectsOf(
	mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration,
) []client.Object {
	var objects []client.Object
	if mutating != nil {
		objects = append(objects, mutating)
	}
	if validating != nil {
		objects = append(objects, validating)
	}
	return objects
}
