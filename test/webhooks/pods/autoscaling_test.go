package pods

import (
	"fmt"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/test/kit"
)

// installing makes only one test install the definition. The others find it.
var installing sync.Mutex

// installAutoscalers installs a CustomResourceDefinition like that of VerticalPodAutoscalers, reduced to the fields that matter.
func installAutoscalers(t *testing.T) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	mode := apiextensionsv1.JSONSchemaProps{Type: "string"}
	for _, value := range []string{"Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto"} {
		mode.Enum = append(mode.Enum, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", value)})
	}
	object := func(field string, schema apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: ptr.To(true), Properties: map[string]apiextensionsv1.JSONSchemaProps{field: schema},
		}
	}
	schema := object("spec", object("updatePolicy", object("updateMode", mode)))
	kit.Define(t, shared.Get(t).Config(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "verticalpodautoscalers.autoscaling.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "autoscaling.k8s.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "VerticalPodAutoscaler", Plural: "verticalpodautoscalers", Singular: "verticalpodautoscaler"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
			}},
		},
	})
}

// autoscaler returns a VerticalPodAutoscaler with labels and a specification in YAML.
func (f *fixture) autoscaler(name, labels, spec string) *unstructured.Unstructured {
	f.Helper()
	autoscaler := &unstructured.Unstructured{}
	kit.Must(f, yaml.Unmarshal(fmt.Appendf(nil, "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {namespace: %s, name: %s, labels: %s}\nspec: %s",
		f.namespace, name, labels, spec), autoscaler))
	return autoscaler
}

// mode returns the mode of a VerticalPodAutoscaler, and whether it is labelled as mutated.
func mode(autoscaler *unstructured.Unstructured) string {
	mode, found, err := unstructured.NestedString(autoscaler.Object, "spec", "updatePolicy", "updateMode")
	text := fmt.Sprintf("%s %t %v", mode, found, err)
	if autoscaler.GetLabels()["vpa-in-place-updates.resources.gardener.cloud/mutated"] == "true" {
		text += " mutated"
	}
	return text
}

// TestVerticalAutoscaling checks that modes that evict Pods become InPlaceOrRecreate, on creation and on update.
func TestVerticalAutoscaling(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	installAutoscalers(t)
	f.register(verticalAutoscaling())
	const changed = "InPlaceOrRecreate true <nil> mutated"
	for spec, want := range map[string]string{
		`{}`:                                              changed,
		`{updatePolicy: {}}`:                              changed,
		`{updatePolicy: {updateMode: Auto}}`:              changed,
		`{updatePolicy: {updateMode: Recreate}}`:          changed,
		`{updatePolicy: {updateMode: "Off"}}`:             "Off true <nil>",
		`{updatePolicy: {updateMode: Initial}}`:           "Initial true <nil>",
		`{updatePolicy: {updateMode: InPlaceOrRecreate}}`: "InPlaceOrRecreate true <nil>",
	} {
		autoscaler := f.autoscaler("new", "{}", spec)
		kit.Must(t, f.client.Create(t.Context(), autoscaler, client.DryRunAll))
		if got := mode(autoscaler); got != want {
			t.Errorf("%s: the mode is %s", spec, got)
		}
	}
	skipped := f.autoscaler("skipped", `{vpa-in-place-updates.resources.gardener.cloud/skip: ""}`, `{}`)
	kit.Must(t, f.client.Create(t.Context(), skipped, client.DryRunAll))
	if got := mode(skipped); got != " false <nil>" {
		t.Errorf("an autoscaler that opts out has the mode %s", got)
	}

	updated := f.autoscaler("updated", `{a: b}`, `{updatePolicy: {updateMode: "Off"}}`)
	kit.Must(t, f.client.Create(t.Context(), updated))
	kit.Must(t, unstructured.SetNestedField(updated.Object, "Auto", "spec", "updatePolicy", "updateMode"))
	kit.Must(t, f.client.Update(t.Context(), updated))
	if got := mode(updated); got != changed || updated.GetLabels()["a"] != "b" {
		t.Errorf("after an update, the mode is %s, the labels are %v", got, updated.GetLabels())
	}
	if err := f.client.Create(t.Context(), f.autoscaler("bad", "{}", `{updatePolicy: {updateMode: 1}}`), client.DryRunAll); err == nil {
		t.Error("the API server accepts a mode that is not a string")
	}
}

// TestVerticalAutoscalerThatIsAppliedAgain checks that unknown fields are kept, and that a client that applies its manifest again
// changes nothing.
func TestVerticalAutoscalerThatIsAppliedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	installAutoscalers(t)
	f.register(verticalAutoscaling())
	const spec = `{updatePolicy: {updateMode: Auto, minReplicas: 9007199254740993, future: {a: [1.5, {b: null}]}}, resourcePolicy: {containerPolicies: [{containerName: "*", future: x}]}}`
	apply := func() *unstructured.Unstructured {
		autoscaler := f.autoscaler("applied", "{a: b}", spec)
		kit.Must(t, f.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(autoscaler), client.FieldOwner("test"), client.ForceOwnership))
		return autoscaler
	}
	first := apply()
	want := f.autoscaler("applied", "{a: b}", spec)
	kit.Must(t, unstructured.SetNestedField(want.Object, "InPlaceOrRecreate", "spec", "updatePolicy", "updateMode"))
	if got := fmt.Sprint(first.Object["spec"]); got != fmt.Sprint(want.Object["spec"]) || first.GetLabels()["a"] != "b" {
		t.Errorf("the specification is %s\nwant                 %s", got, want.Object["spec"])
	}
	if second := apply(); second.GetResourceVersion() != first.GetResourceVersion() || mode(second) != "InPlaceOrRecreate true <nil> mutated" {
		t.Errorf("after applying it again, it is %v", second.Object)
	}
}
