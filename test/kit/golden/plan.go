package golden

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// CheckPlan compares the bundles of a plan, and the status that goes with it, with the file testdata/<name>.yaml, which -update writes.
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
			kind, err := apiutil.GVKForObject(object, scheme.Scheme)
			if err != nil {
				t.Fatal(err)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			delete(content, "status")
			content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
			write("object of "+bundle.Name, content)
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
