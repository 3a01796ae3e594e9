package generate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/component/crds"
)

// TestGardenletListsItsKinds checks that gardenlet may list the objects of all kinds that it defines in a seed: it deletes their definitions with the
// Seed only when no object is left. Without the right, a Seed with gateways was never deleted.
func TestGardenletListsItsKinds(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "gardenlet"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Render(loaded, "garden", gardenletValues(t))
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(files["rbac-seed.yaml"], "\n---\n") {
		role := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			rules = append(rules, role.Rules...)
		}
	}
	definitions, err := crds.Objects(crds.Values{Groups: crds.Groups()})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, object := range definitions {
		if object.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
			continue // policies that guard definitions
		}
		checked++
		plural, group, _ := strings.Cut(object.GetName(), ".")
		if !slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Verbs, "list") && slices.Contains(rule.APIGroups, group) &&
				(slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, plural))
		}) {
			t.Errorf("gardenlet may not list %s", object.GetName())
		}
	}
	if checked < 30 {
		t.Errorf("only %d definitions were checked", checked)
	}
}
