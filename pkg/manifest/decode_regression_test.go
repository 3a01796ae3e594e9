package manifest

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

const jsonCM = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"}}`

// TestLostDocuments checks that no document is silently dropped, because its objects would be pruned. Each input must result in
// two objects or a problem.
func TestLostDocuments(t *testing.T) {
	a, b := strings.Replace(jsonCM, "NAME", "a", 1), strings.Replace(jsonCM, "NAME", "b", 1)
	for name, text := range map[string]string{
		"truncated JSON stream":  a + "\n" + b[:len(b)-3],
		"JSON with garbage":      a + "\nhello",
		"JSON and YAML mixed":    a + "\n" + b + "\n---\n" + configMap("c"),
		"JSON with BOM":          "\ufeff" + a + "\n" + b,
		"document end marker":    configMap("a") + "...\n" + configMap("b"),
		"old Mac line ends":      strings.ReplaceAll(configMap("a")+"---\n"+configMap("b"), "\n", "\r"),
		"NEL line ends":          strings.ReplaceAll(configMap("a")+"---\n"+configMap("b"), "\n", "\u0085"),
		"list of YAML documents": "[]\n...\n" + configMap("b"),
	} {
		documents, problems := decodeText(text)
		if !strings.Contains(namesOf(documents), "b") && len(problems) == 0 {
			t.Errorf("%s: only %q and no problem", name, namesOf(documents))
		}
	}
}

func TestGreatestLimit(t *testing.T) {
	limits := DefaultLimits()
	limits.Bytes = math.MaxInt64
	if documents, problems := decodeSecret(secretWith(map[string]string{"a.br": compress(t, []byte(configMap("a")))}), limits); len(documents) != 1 {
		t.Errorf("%d objects, %v", len(documents), textsOf(problems))
	}
}

func TestLeaks(t *testing.T) {
	for _, text := range []string{
		configMap("a") + "--- hunter2\n", "data:\n  ~: 123456\n", "data:\n  ~: 'x\"hunter2'\n", "data: !!int 'a`hunter2'\n",
		"data:\n  {pin: 123456}: 1\n", `{"data":{"pin":123456e999}}`,
	} {
		_, problems := decodeText(text)
		for _, p := range textsOf(problems) {
			if strings.Contains(p, "hunter2") || strings.Contains(p, "123456") {
				t.Errorf("%q: %s", text, p)
			}
		}
	}
}

func TestUnboundedProblems(t *testing.T) {
	for name, text := range map[string]string{
		"JSON":  "{}" + strings.Repeat("1 ", 100_000),
		"items": `{"kind":"List","items":[` + strings.Repeat("1,", 100_000) + "1]}",
		"YAML":  strings.Repeat("1\n---\n", 100_000),
	} {
		if _, problems := decodeText(text); len(problems) > 1000 {
			t.Errorf("%s: %d problems from %d bytes", name, len(problems), len(text))
		}
	}
}

func TestAliasStrings(t *testing.T) {
	text := "a: &a " + strings.Repeat("x", 4096) + "\nb: [" + strings.Repeat("*a,", 20000) + "]\n"
	documents, _ := decodeText(text)
	size := 0
	for _, d := range documents {
		size += len(fmt.Sprint(d.Object))
	}
	if int64(size) > testLimits().Bytes {
		t.Errorf("%d bytes became %d, the limit is %d", len(text), size, testLimits().Bytes)
	}
}

func TestBadNames(t *testing.T) {
	for _, metadata := range []string{
		`{name: ..}`, `{name: .}`, `{name: ../secrets/x}`, `{name: a/status}`, `{name: a, namespace: ..}`, `{name: a, namespace: ../../x}`,
		`{name: a, namespace: 7}`, `{name: a, namespace: yes}`, `{name: a, namespace: [b]}`,
	} {
		documents, _ := decodeText("apiVersion: v1\nkind: ConfigMap\nmetadata: " + metadata + "\n")
		for _, m := range Render(documents, testScopes(), nil, testMarks(nil)).Manifests {
			t.Errorf("%s is read as %s", metadata, m.Ref)
		}
	}
	for _, apiVersion := range []string{"/", "/v1", "apps/"} {
		documents, _ := decodeText("apiVersion: " + apiVersion + "\nkind: ConfigMap\nmetadata: {name: a}\n")
		for _, m := range Render(documents, testScopes(), nil, testMarks(nil)).Manifests {
			t.Errorf("apiVersion %s is read as %s", apiVersion, m.Ref)
		}
	}
}

func TestBadStringDataIsAProblem(t *testing.T) {
	for _, fields := range []string{
		"stringData: {a: x, b: x, c: x, d: 7}", "data: [x]\nstringData: {a: x}", "data: {b: eA==}\nstringData: hello",
	} {
		documents, _ := decodeText("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n" + fields + "\n")
		if got := Render(documents, testScopes(), nil, testMarks(nil)); len(got.Manifests) != 0 || len(got.Errors) != 1 {
			t.Errorf("%s: %d manifests, problems %v", fields, len(got.Manifests), textsOf(got.Errors))
		}
	}
}
