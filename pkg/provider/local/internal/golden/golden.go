// Package golden compares what the parts of provider-local compute with files.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

var update = flag.Bool("update", false, "write the golden files")

// Check compares the bundles of a plan, and the status that goes with it, with the file testdata/<name>.yaml, which -update writes.
func Check(t *testing.T, name string, plan flow.Plan, status any) {
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
	compare(t, name+".yaml", text.Bytes())
}

// CheckText compares a text with the file testdata/<name>, which -update writes.
func CheckText(t *testing.T, name, text string) {
	t.Helper()
	compare(t, name, []byte(text))
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("it is not what %s has: see git diff after -update; got\n%s", path, got)
	}
}
