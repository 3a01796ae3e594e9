package webhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// TestTable: each row is whole, and enabled by its setting alone.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Table() {
		if row.Name == "" || !strings.HasPrefix(row.Path, "/") || !strings.HasSuffix(row.Does, ".") || row.New == nil || seen[row.Name] {
			t.Errorf("the row of %q is not whole: %+v", row.Name, row)
		}
		seen[row.Name] = true
		if (row.Kind == Authorizing) != (row.Calls == nil) {
			t.Errorf("%s is %s, and has the calls %v", row.Name, row.Kind, row.Calls)
		}
		if row.Calls != nil && (len(row.Calls.Rules) == 0 || !strings.HasSuffix(row.Calls.FailureReason, ".") || row.Calls.TimeoutSeconds == 0) {
			t.Errorf("the calls of %s are not whole: %+v", row.Name, row.Calls)
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

// TestConfigurations compares the configurations of all webhooks with those in testdata, which UPDATE=true writes.
func TestConfigurations(t *testing.T) {
	for name, placement := range map[string]Placement{"seed": {}, "shoot": {Shoot: true, NamePrefix: "prefix-"}} {
		reach := AtService("garden", "gardener-resource-manager", nil)
		if placement.Shoot {
			reach = AtURL("https://gardener-resource-manager.shoot--project--name:443", []byte("bundle"))
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
