package v1alpha1

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const (
	header = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n"
	// minimal is the smallest valid configuration.
	minimal = header + "leaderElection: {resourceNamespace: garden}\n"
)

func mustParse(t *testing.T, text string) *ResourceManagerConfiguration {
	t.Helper()
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

// problemsOf returns the lines of the error that Parse must return, without their bullets.
func problemsOf(t *testing.T, text string) []string {
	t.Helper()
	c, err := Parse([]byte(text))
	if err == nil {
		t.Fatalf("Parse accepted %q", text)
	}
	if c != nil {
		t.Errorf("Parse returned a configuration together with an error")
	}
	if problem := new(field.Error); !errors.As(err, &problem) {
		t.Fatalf("the error contains no *field.Error: %v", err)
	}
	lines := strings.Split(err.Error(), "\n")[1:]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  - ")
	}
	return lines
}

func toYAML(t *testing.T, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	return string(data)
}

// expectYAML compares value with the expected YAML. The order of keys and the formatting do not matter.
func expectYAML(t *testing.T, value any, expected string) {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal([]byte(expected), &tree); err != nil {
		t.Fatalf("the expected YAML is invalid: %v", err)
	}
	if got, want := toYAML(t, value), toYAML(t, tree); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
