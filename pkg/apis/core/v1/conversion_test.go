package v1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	. "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// pairs are ControllerDeployments in v1 and their equivalents in v1beta1.
var pairs = []struct{ name, v1, v1beta1 string }{
	{"chart", `
metadata: {name: a, labels: {b: c}}
injectGardenKubeconfig: true
helm: {rawChart: Y2hhcnQ=, values: {a: {b: 1}}}`, `
metadata: {name: a, labels: {b: c}}
injectGardenKubeconfig: true
type: helm
providerConfig: {chart: Y2hhcnQ=, values: {a: {b: 1}}}`},
	{"OCI artifact", `
metadata: {name: a}
helm: {ociRepository: {repository: registry.example.org/a, tag: "1", pullSecretRef: {name: s}}}`, `
metadata: {name: a}
type: helm
providerConfig: {ociRepository: {repository: registry.example.org/a, tag: "1", pullSecretRef: {name: s}}}`},
	{"other type", `
metadata:
  name: a
  annotations:
    own: annotation
    migration.controllerdeployment.gardener.cloud/type: custom
    migration.controllerdeployment.gardener.cloud/providerConfig: '{"a":1}'`, `
metadata: {name: a, annotations: {own: annotation}}
type: custom
providerConfig: {a: 1}`},
	{"references", `
metadata: {name: a}
helm: {rawChart: Y2hhcnQ=}
resources: [{name: s, resourceRef: {apiVersion: v1, kind: Secret, name: s}}]`, `
metadata:
  name: a
  annotations:
    migration.controllerdeployment.gardener.cloud/resources: '[{"name":"s","resourceRef":{"kind":"Secret","name":"s","apiVersion":"v1"}}]'
type: helm
providerConfig: {chart: Y2hhcnQ=}`},
	{"nothing", "metadata: {name: a}", "{metadata: {name: a}, type: ''}"},
}

func read[T any](t *testing.T, content string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(content), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func text(t *testing.T, object any) string {
	t.Helper()
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestConversion converts in both directions through a scheme.
func TestConversion(t *testing.T) {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{AddToScheme, v1beta1.AddToScheme, RegisterConversions}
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			newer, older := read[ControllerDeployment](t, pair.v1), read[v1beta1.ControllerDeployment](t, pair.v1beta1)
			gotOlder, gotNewer := &v1beta1.ControllerDeployment{}, &ControllerDeployment{}
			if err := scheme.Convert(newer, gotOlder, nil); err != nil || text(t, gotOlder) != text(t, older) {
				t.Errorf("to v1beta1: %v\n%+v\nwant\n%+v", err, gotOlder, older)
			}
			if err := scheme.Convert(older, gotNewer, nil); err != nil || text(t, gotNewer) != text(t, newer) {
				t.Errorf("from v1beta1: %v\n%+v\nwant\n%+v", err, gotNewer, newer)
			}
		})
	}
}

// TestConversionOfLists converts a list of all pairs in both directions, and reports an item that cannot be converted.
func TestConversionOfLists(t *testing.T) {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{AddToScheme, v1beta1.AddToScheme, RegisterConversions}
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	newer, older := &ControllerDeploymentList{}, &v1beta1.ControllerDeploymentList{}
	newer.ResourceVersion, older.ResourceVersion = "5", "5"
	for _, pair := range pairs {
		newer.Items = append(newer.Items, *read[ControllerDeployment](t, pair.v1))
		older.Items = append(older.Items, *read[v1beta1.ControllerDeployment](t, pair.v1beta1))
	}
	gotOlder, gotNewer := &v1beta1.ControllerDeploymentList{}, &ControllerDeploymentList{}
	if err := scheme.Convert(newer, gotOlder, nil); err != nil || text(t, gotOlder) != text(t, older) {
		t.Errorf("to v1beta1: %v\n%+v\nwant\n%+v", err, gotOlder, older)
	}
	if err := scheme.Convert(older, gotNewer, nil); err != nil || text(t, gotNewer) != text(t, newer) {
		t.Errorf("from v1beta1: %v\n%+v\nwant\n%+v", err, gotNewer, newer)
	}
	older.Items[0].ProviderConfig.Raw = []byte(`{"chart": 5}`)
	if err := scheme.Convert(older, gotNewer, nil); err == nil {
		t.Error("no error for an item that cannot be converted")
	}
}

func TestConversionErrors(t *testing.T) {
	for name, content := range map[string]string{
		"values": "{metadata: {name: a}, type: helm, providerConfig: {chart: 5}}",
		"references": `{metadata: {name: a, annotations: {migration.controllerdeployment.gardener.cloud/resources: "["}}, type: helm,
  providerConfig: {}}`,
	} {
		if err := ConvertFromV1beta1(read[v1beta1.ControllerDeployment](t, content), &ControllerDeployment{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestConversionSharesNothing checks that a change of the result does not change the input.
func TestConversionSharesNothing(t *testing.T) {
	newer := read[ControllerDeployment](t, "{metadata: {name: a, annotations: {a: b}}, helm: {rawChart: Y2hhcnQ=}}")
	before := newer.DeepCopy()
	older := &v1beta1.ControllerDeployment{}
	if err := ConvertToV1beta1(newer, older); err != nil {
		t.Fatal(err)
	}
	older.Annotations["a"] = "c"
	if !equality.Semantic.DeepEqual(newer, before) {
		t.Errorf("%+v", newer)
	}
}
