package golden

import (
	"bytes"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// CheckPlan compares the bundles of a plan, and the corresponding status, with the file testdata/<name>.yaml, which
// -update writes.
func CheckPlan(t *testing.T, name string, plan flow.Plan, status any) {
	t.Helper()
	var text bytes.Buffer
	write := func(head string, value any) {
		content, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("# " + head + "\n---\n")
		text.Write(content)
	}
	for _, bundle := range plan.Bundles {
		write("bundle "+bundle.Key.String(), map[string]any{"labels": bundle.Labels, "spec": bundle.Spec})
		for _, object := range bundle.Objects {
			write("object of "+bundle.Name, Unstructured(t, object).Object)
		}
	}
	for _, tombstone := range plan.Tombstones {
		write("tombstone "+tombstone.String(), nil)
	}
	if status != nil {
		write("status", status)
	}
	CheckText(t, name+".yaml", text.String())
}
