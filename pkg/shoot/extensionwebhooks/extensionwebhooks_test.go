package extensionwebhooks

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// configuration returns webhooks that a program in a namespace serves.
func configuration(name, namespace string, webhooks ...admissionregistrationv1.MutatingWebhook) admissionregistrationv1.MutatingWebhookConfiguration {
	for i := range webhooks {
		webhooks[i].ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "webhooks"}
	}
	return admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks}
}

// installation returns the ManagedResource of an extension.
func installation(secret string, rolledOut bool) map[string]*resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, resourcesv1alpha1.LocalObjectReference{Name: secret})
	mr.Status.ObservedGeneration = 1
	progressing := resourcesv1alpha1.ConditionTrue
	if rolledOut {
		progressing = resourcesv1alpha1.ConditionFalse
	}
	mr.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue},
		{Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionTrue},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing},
	}
	return map[string]*resourcesv1alpha1.ManagedResource{"aws": mr}
}

// TestRevisions checks that the revision of an extension counts once it is rolled out, and that webhooks of other programs do not count.
func TestRevisions(t *testing.T) {
	t.Parallel()
	selects := admissionregistrationv1.MutatingWebhook{Name: "controlplane"}
	configurations := []admissionregistrationv1.MutatingWebhookConfiguration{
		configuration("z", "extension-aws", selects), configuration("resource-manager", "garden", selects), configuration("a", "extension-unknown", selects),
		{ObjectMeta: metav1.ObjectMeta{Name: "by-url"}, Webhooks: []admissionregistrationv1.MutatingWebhook{selects}},
	}
	var rollouts Rollouts
	for _, step := range []struct {
		name, secret string
		rolledOut    bool
		want         string
	}{
		{"being rolled out after a start", "v1", false, ""},
		{"rolled out", "v1", true, "v1"},
		{"a new version is being rolled out", "v2", false, "v1"},
		{"the new version is rolled out", "v2", true, "v2"},
	} {
		mutators := rollouts.Mutators(configurations, installation(step.secret, step.rolledOut))
		if len(mutators) != 2 || mutators[0].Configuration.Name != "a" || mutators[0].Revision != "" || mutators[1].Revision != step.want {
			t.Errorf("%s: %+v, want the revision %q", step.name, mutators, step.want)
		}
	}
	if mutators := rollouts.Mutators(configurations, nil); mutators[1].Revision != "" || len(rollouts.completed) > 0 {
		t.Errorf("after the extension is removed: %+v, remembered %v", mutators, rollouts.completed)
	}
}

// TestIn checks which webhooks select labelled objects in a namespace.
func TestIn(t *testing.T) {
	t.Parallel()
	labelled := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	webhook := func(name string, namespaces, objects *metav1.LabelSelector) admissionregistrationv1.MutatingWebhook {
		w := admissionregistrationv1.MutatingWebhook{Name: name, NamespaceSelector: namespaces, ObjectSelector: objects}
		w.ClientConfig.CABundle = []byte("ca")
		return w
	}
	objects := labelled("mutated", "true")
	given := configuration("aws", "extension-aws",
		webhook("own", labelled("provider", "aws"), objects), webhook("everywhere", nil, objects), webhook("all namespaces", &metav1.LabelSelector{}, objects),
		webhook("other provider", labelled("provider", "gcp"), objects), webhook("all objects", nil, nil),
		webhook("also all objects", nil, &metav1.LabelSelector{}), webhook("not valid", &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "wrong"}},
		}, objects),
	)
	given.ResourceVersion = "7"
	selected := In([]flow.Mutator{{Configuration: &given, Revision: "v1"}}, map[string]string{"provider": "aws"})
	if len(selected) != 1 || selected[0].Revision != "v1" || selected[0].Configuration.ResourceVersion != "" {
		t.Fatalf("%+v", selected)
	}
	var names []string
	for _, one := range selected[0].Configuration.Webhooks {
		names = append(names, one.Name)
		if one.ClientConfig.CABundle != nil {
			t.Errorf("%s has a certificate", one.Name)
		}
	}
	if !slices.Equal(names, []string{"own", "everywhere", "all namespaces"}) {
		t.Errorf("%q", names)
	}
	if given.Webhooks[0].ClientConfig.CABundle == nil {
		t.Error("the cached configuration was changed")
	}
	none := configuration("gcp", "extension-gcp", webhook("other", labelled("provider", "gcp"), objects))
	if selected := In([]flow.Mutator{{Configuration: &none}}, nil); len(selected) != 0 {
		t.Errorf("%+v", selected)
	}
}
