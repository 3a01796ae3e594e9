package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestDropHidden(t *testing.T) {
	for before, want := range map[string]string{
		"[{name: A, value: '1'}]":                                                                       "A=1",
		"[{name: A, value: '1'}, {name: A, value: '1'}]":                                                "A=1",
		"[{name: A, value: '1'}, {name: B, value: x}, {name: A, value: '2'}]":                           "B=x A=2",
		"[{name: A, value: '1'}, {name: A, value: '2'}, {name: A, value: '3'}]":                         "A=3",
		"[{name: A, value: '1'}, {name: A, value: '2'}, {name: B, value: $(A)}]":                        "A=2 B=$(A)",
		"[{name: A, value: '1'}, {name: B, value: $(A)}, {name: A, value: '2'}]":                        "A=1 B=$(A) A=2",
		"[{name: A, value: '1'}, {name: A, value: $(A)x}]":                                              "A=1 A=$(A)x",
		"[{name: A, value: $(B)}, {name: B, value: '1'}, {name: B, value: '2'}]":                        "A=$(B) B=2",
		"[{name: B, value: '1'}, {name: A, value: $(B)}, {name: B, value: '2'}, {name: A, value: '3'}]": "B=2 A=3",
		"[{name: A, valueFrom: {fieldRef: {fieldPath: x}}}, {name: A, value: '2'}]":                     "A=2",
		"[{name: A, value: '1'}, {name: A, valueFrom: {fieldRef: {fieldPath: x}}}]":                     "A=<nil>",
		"[{value: '1'}, {value: '1'}, text, {name: 1}, {name: 1}, null]":                                "<nil>=1 <nil>=1 text 1=<nil> 1=<nil> <nil>",
	} {
		t.Run(before, func(t *testing.T) {
			var env []any
			if err := yaml.Unmarshal([]byte(before), &env); err != nil {
				t.Fatal(err)
			}
			container := map[string]any{"env": env}
			dropHidden(container)
			var got []string
			kept, _ := container["env"].([]any)
			for _, entry := range kept {
				if variable, ok := entry.(map[string]any); ok {
					entry = fmt.Sprintf("%v=%v", variable["name"], variable["value"])
				}
				got = append(got, fmt.Sprint(entry))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestDropDuplicates(t *testing.T) {
	const pod = "{containers: [{ports: [{containerPort: 80}, {containerPort: 81}, {containerPort: 80}, {containerPort: 80, name: a}]}], " +
		"initContainers: [{env: [{name: A}, {name: A}]}], imagePullSecrets: [{name: a}, {name: a}], hostAliases: [{ip: '1'}, {ip: '1'}], " +
		"volumes: [{name: a}, {name: a}]}"
	const once = `{"containers":[{"ports":[{"containerPort":80},{"containerPort":81},{"containerPort":80,"name":"a"}]}],` +
		`"hostAliases":[{"ip":"1"}],"imagePullSecrets":[{"name":"a"}],"initContainers":[{"env":[{"name":"A"}]}],` +
		`"volumes":[{"name":"a"},{"name":"a"}]}`
	const twice = `{"containers":[{"ports":[{"containerPort":80},{"containerPort":81},{"containerPort":80},{"containerPort":80,"name":"a"}]}],` +
		`"hostAliases":[{"ip":"1"},{"ip":"1"}],"imagePullSecrets":[{"name":"a"},{"name":"a"}],"initContainers":[{"env":[{"name":"A"},{"name":"A"}]}],` +
		`"volumes":[{"name":"a"},{"name":"a"}]}`
	for name, test := range map[string]struct{ group, kind, before, want string }{
		"metadata":          {"example.com", "Widget", "metadata: {finalizers: [a, b, a]}", `{"metadata":{"finalizers":["a","b"]}}`},
		"a Pod":             {"", "Pod", "spec: " + pod, `{"spec":` + once + `}`},
		"a Deployment":      {"apps", "Deployment", "spec: {template: {spec: " + pod + "}}", `{"spec":{"template":{"spec":` + once + `}}}`},
		"a CronJob":         {"batch", "CronJob", "spec: {jobTemplate: {spec: {template: {spec: " + pod + "}}}}", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":` + once + `}}}}}`},
		"a PodTemplate":     {"", "PodTemplate", "template: {spec: " + pod + "}", `{"template":{"spec":` + once + `}}`},
		"a custom resource": {"example.com", "Widget", "spec: {template: {spec: " + pod + "}}", `{"spec":{"template":{"spec":` + twice + `}}}`},
		"a ServiceAccount": {"", "ServiceAccount", "secrets: [{name: a}, {name: a}]\nimagePullSecrets: [{name: b}, {name: b}]",
			`{"imagePullSecrets":[{"name":"b"}],"secrets":[{"name":"a"}]}`},
		"lists of other shapes": {"", "Pod", "metadata: {finalizers: {}}\nspec: {containers: [text], hostAliases: 1}",
			`{"metadata":{"finalizers":{}},"spec":{"containers":["text"],"hostAliases":1}}`},
		"a spec of another shape": {"apps", "Deployment", "spec: text", `{"spec":"text"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var obj map[string]any
			if err := yaml.Unmarshal([]byte(test.before), &obj); err != nil {
				t.Fatal(err)
			}
			dropDuplicates(obj, schema.GroupKind{Group: test.group, Kind: test.kind})
			if got, err := json.Marshal(obj); err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}
