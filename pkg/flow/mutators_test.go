package flow

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const mutatedLabel = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook"

// mutator returns a program with three webhooks: one selects labelled objects, one selects all objects, and one selects others.
func mutator(revision string, change func(*admissionregistrationv1.MutatingWebhook)) Mutator {
	webhook := admissionregistrationv1.MutatingWebhook{
		Name: "controlplane.example.org", ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mutatedLabel: "true"}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("ca")},
	}
	if change != nil {
		change(&webhook)
	}
	return Mutator{Revision: revision, Configuration: &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "provider"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{webhook, {Name: "all.example.org"}, {
			Name: "others.example.org", ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"other": "true"}},
		}},
	}}
}

// markedWith returns the mark of a labelled object. It fails if another object gets a mark.
func markedWith(t *testing.T, mutators ...Mutator) string {
	t.Helper()
	labelled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: map[string]string{mutatedLabel: "true"}}}
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	if err := MarkMutated([]client.Object{labelled, plain}, mutators); err != nil {
		t.Fatal(err)
	}
	if plain.Annotations != nil {
		t.Errorf("an object that no webhook selects has the annotations %v", plain.Annotations)
	}
	return labelled.Annotations[AnnotationMutators]
}

func TestObjectsAreSentAgainWhenAWebhookChanges(t *testing.T) {
	before := markedWith(t, mutator("1", nil))
	if before == "" {
		t.Fatal("the labelled object has no mark")
	}
	for name, test := range map[string]struct {
		mutators []Mutator
		again    bool
	}{
		"nothing changed": {mutators: []Mutator{mutator("1", nil)}},
		"certificate of the webhook": {mutators: []Mutator{mutator("1", func(w *admissionregistrationv1.MutatingWebhook) {
			w.ClientConfig.CABundle = []byte("rotated")
		})}},
		"version of the program": {mutators: []Mutator{mutator("2", nil)}, again: true},
		"rules of the webhook": {again: true, mutators: []Mutator{mutator("1", func(w *admissionregistrationv1.MutatingWebhook) {
			w.Rules = []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"CREATE"}}}
		})}},
		"webhook gone": {mutators: nil, again: true},
		"another program": {again: true, mutators: func() []Mutator {
			second := mutator("1", nil)
			second.Configuration.Name = "network"
			return []Mutator{mutator("1", nil), second}
		}()},
	} {
		if after := markedWith(t, test.mutators...); (after != before) != test.again {
			t.Errorf("%s: the mark is %q, previously %q", name, after, before)
		}
	}
	second := mutator("1", nil)
	second.Configuration.Name = "network"
	if markedWith(t, second, mutator("1", nil)) != markedWith(t, mutator("1", nil), second) {
		t.Error("the mark depends on the order of the programs")
	}
	wrong := mutator("1", func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	})
	if err := MarkMutated(nil, []Mutator{wrong}); err == nil || !strings.Contains(err.Error(), "provider/controlplane.example.org") {
		t.Errorf("for an invalid selector: %v", err)
	}
}

// TestAMarkIsAChange checks that a bundle with another mark is emitted again, and paced like a rollout of a new
// version.
func TestAMarkIsAChange(t *testing.T) {
	content := func(revision string) string {
		labelled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "labelled", Labels: map[string]string{mutatedLabel: "true"}}}
		objects := []client.Object{labelled}
		if err := MarkMutated(objects, []Mutator{mutator(revision, nil)}); err != nil {
			t.Fatal(err)
		}
		compiled, err := compile(Bundle{Key: Key{Namespace: "a", Name: "b"}, Objects: objects}, testScheme())
		if err != nil {
			t.Fatal(err)
		}
		return compiled.content
	}
	before, again, after := content("1"), content("1"), content("2")
	if before != again || before == after {
		t.Error("the content of a bundle does not depend on the mark of its objects")
	}
}
