package nodeagentauthorizer

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func secretWith(data string) *corev1.Secret {
	secret := &corev1.Secret{Data: map[string][]byte{configurationKey: []byte(data), "other": []byte("spec: {files: [{content: {secretRef: {name: no}}}]}")}}
	secret.Namespace, secret.Name = secretNamespace, "a"
	return secret
}

func TestReferencesOf(t *testing.T) {
	const bad = "the key osc.yaml of Secret kube-system/a is not an OperatingSystemConfig in YAML"
	for data, want := range map[string]struct {
		references []reference
		err        string
	}{
		"":                           {},
		"null":                       {},
		"{}":                         {},
		"spec: {future: top-secret}": {},
		"spec: {files: [{path: /a, content: {inline: {data: x}}}, {path: /b}, {content: {secretRef: {dataKey: x}}}]}": {},
		"spec: {files: [{content: {secretRef: {name: b}}}, {content: {secretRef: {name: a}}, hostName: h}]}\nstatus: {extensionFiles: [{content: {secretRef: {name: c}}}]}": {
			references: []reference{{"b", ""}, {"a", "h"}, {"c", ""}},
		},
		"spec: {files: [{content: {secretRef: {name: b}}, hostName: ''}]}": {references: []reference{{"b", ""}}},
		"top-secret":                             {err: bad},
		"spec: [":                                {err: bad},
		"spec: {files: [{content: top-secret}]}": {err: bad},
		strings.Repeat("#", corev1.MaxSecretSize+1): {err: "the key osc.yaml of Secret kube-system/a is larger than 1048576 bytes"},
	} {
		got, err := referencesOf(secretWith(data))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(got, want.references) || text != want.err {
			t.Errorf("%.80s: %v, %v", data, got, err)
		}
	}
	if got, err := referencesOf(&corev1.Secret{}); got != nil || err != nil {
		t.Errorf("without the key: %v, %v", got, err)
	}
}

// FuzzReferencesOf checks that there is no panic and no empty name, and that errors do not contain the data.
func FuzzReferencesOf(f *testing.F) {
	f.Add("spec: {files: [{content: {secretRef: {name: b}}, hostName: a}]}")
	f.Add("a: &a [*a]")
	f.Add("status: {extensionFiles: 1}")
	f.Fuzz(func(t *testing.T, data string) {
		references, err := referencesOf(secretWith(data))
		for _, reference := range references {
			if reference.secret == "" {
				t.Fatal("a reference has an empty name")
			}
		}
		if err != nil && err.Error() != "the key osc.yaml of Secret kube-system/a is not an OperatingSystemConfig in YAML" {
			t.Fatal(err)
		}
	})
}
