package webhooks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// TestTable checks that each row is complete, and enabled only by its own setting.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Table() {
		if row.Name == "" || !strings.HasPrefix(row.Path, "/") || !strings.HasSuffix(row.Does, ".") || row.New == nil || seen[row.Name] {
			t.Errorf("the row of %q is incomplete: %+v", row.Name, row)
		}
		seen[row.Name] = true
		if (row.Kind == webhookserver.Authorizing) != (row.Calls == nil) {
			t.Errorf("%s is %s, and has the calls %v", row.Name, row.Kind, row.Calls)
		}
		if row.Calls != nil && (len(row.Calls.Rules) == 0 || !strings.HasSuffix(row.Calls.FailureReason, ".") || row.Calls.TimeoutSeconds == 0) {
			t.Errorf("the calls of %s are incomplete: %+v", row.Name, row.Calls)
		}
		config := &configv1alpha1.WebhooksConfiguration{}
		if row.Enabled(config) {
			t.Errorf("%s is enabled by default", row.Name)
		}
		if err := yaml.UnmarshalStrict([]byte(row.Setting+": {enabled: true}"), config); err != nil {
			t.Fatal(err)
		}
		if !row.Enabled(config) {
			t.Errorf("%s is not enabled by webhooks.%s.enabled", row.Name, row.Setting)
		}
	}
}

// TestDocumentation compares the table of the documentation with this one. UPDATE=true writes it.
func TestDocumentation(t *testing.T) {
	const path, begin, end = "../../docs/webhooks.md", "<!-- begin of the table -->\n", "<!-- end of the table -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the table", path)
	}
	want := before + begin + documentation() + end + after
	if os.Getenv("UPDATE") == "true" {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("the table of %s is not up to date: run UPDATE=true go test ./pkg/webhooks", path)
	}
}

// documentation returns the table in Markdown.
func documentation() string {
	var text strings.Builder
	text.WriteString("\n| webhook | `webhooks.` | path | called for | without a response |\n|---|---|---|---|---|\n")
	for _, row := range Table() {
		calledFor, otherwise := "SubjectAccessReviews", "as configured in the API server"
		if row.Calls != nil {
			var rules []string
			for _, rule := range row.Calls.Rules {
				operations := make([]string, 0, len(rule.Operations))
				for _, operation := range rule.Operations {
					operations = append(operations, strings.ToLower(string(operation)))
				}
				rules = append(rules, fmt.Sprintf("%s of %s (%#q)", strings.Join(operations, ", "), strings.Join(rule.Resources, ", "),
					strings.TrimPrefix(rule.APIGroups[0]+"/"+rule.APIVersions[0], "/")))
			}
			calledFor, otherwise = strings.Join(rules, "; "), fmt.Sprintf("%#q after %d s. %s", row.Calls.FailurePolicy, row.Calls.TimeoutSeconds, row.Calls.FailureReason)
		}
		if row.SeedOnly {
			calledFor += "; in seeds only"
		}
		fmt.Fprintf(&text, "| **%s** %s | `%s` | `%s` | %s | %s |\n", row.Name, row.Does, row.Setting, row.Path, calledFor, otherwise)
	}
	return text.String() + "\n"
}

// TestConfigurations compares the configurations of all webhooks with those in testdata. UPDATE=true writes them.
func TestConfigurations(t *testing.T) {
	for name, placement := range map[string]Placement{"seed": {}, "shoot": {Shoot: true, NamePrefix: "prefix-"}} {
		reach := webhookserver.AtService("garden", "gardener-resource-manager", 443, nil)
		if placement.Shoot {
			reach = webhookserver.AtURL("https://gardener-resource-manager.shoot--project--name:443", []byte("bundle"))
		}
		var text strings.Builder
		for _, configuration := range []any{
			MutatingConfiguration(Table(), placement, reach), ValidatingConfiguration(Table(), placement, reach),
		} {
			encoded, err := yaml.Marshal(configuration)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n" + string(encoded))
		}
		path := filepath.Join("testdata", name+".yaml")
		if os.Getenv("UPDATE") == "true" {
			if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text.String() != string(want) {
			t.Errorf("the configurations of a %s are not those of %s:\n%s", name, path, text.String())
		}
	}
}
