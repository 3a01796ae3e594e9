package fleet

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestScopesOfASeed checks that the ManagedResources of a Seed are those on which its health depends, without those of Shoots.
func TestScopesOfASeed(t *testing.T) {
	seed := &Owner{UID: "seed"}
	seed.Kind = Seed
	component := func(from string) labels.Set {
		return labels.Set{flow.LabelFlow: from, constants.LabelGardenRole: constants.RoleSeedSystemComponent}
	}
	for name, test := range map[string]struct {
		labels labels.Set
		read   bool
	}{
		"its own":                         {labels.Set{flow.LabelFlow: "seed", flow.LabelOwner: "seed"}, true},
		"of another Seed":                 {labels.Set{flow.LabelFlow: "seed", flow.LabelOwner: "other"}, false},
		"an extension that it needs":      {component("controllerinstallation"), true},
		"an extension of Shoots":          {labels.Set{flow.LabelFlow: "controllerinstallation"}, false},
		"of no flow":                      {labels.Set{"a": "b"}, true},
		"of a Shoot":                      {labels.Set{flow.LabelFlow: "shoot", flow.LabelOwner: "seed"}, false},
		"network policies of a namespace": {component("network-policies"), false},
	} {
		read := slices.ContainsFunc(seed.Scopes(), func(options []client.ListOption) bool {
			selected := (&client.ListOptions{}).ApplyOptions(options)
			return selected.Namespace == constants.GardenNamespace && selected.LabelSelector.Matches(test.labels)
		})
		if read != test.read {
			t.Errorf("%s: read: %t", name, read)
		}
	}
}
