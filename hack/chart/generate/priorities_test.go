package generate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// highestControlPlane is the highest priority that a control plane of a Shoot has: gardener-system-500.
const highestControlPlane = 999998500

// rendered is the output of a chart, or a file of manifests.
type rendered struct {
	name, text string
	// above is set for programs that control planes of Shoots must not preempt.
	above bool
}

// charts returns the output of all charts with Pods, with their default values where these suffice.
func charts(t *testing.T) []rendered {
	t.Helper()
	var all []rendered
	for path, values := range map[string]map[string]any{
		"apiserver": {
			"clusterIdentity": "garden", "tls": map[string]any{"secretName": "tls", "caBundle": "ca"}, "insecure": true,
			"etcd": map[string]any{"servers": []any{"http://etcd:2379"}},
		},
		"controller-manager": {}, "scheduler": {}, "gardenlet": gardenletValues(t), "provider-local": {}, "admission-local/runtime": {},
	} {
		loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		files, err := Render(loaded, "garden", values)
		if err != nil {
			t.Fatalf("chart %s: %v", path, err)
		}
		for name, text := range files {
			all = append(all, rendered{name: "charts/" + path + "/" + name, text: text, above: true})
		}
	}
	return all
}

// manifests returns files of manifests. Templates get the value x.
func manifests(t *testing.T, above bool, pattern string) []rendered {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(pattern)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	var all []rendered
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rendered{name: path, text: strings.NewReplacer("{{ .Namespace }}", "x", "{{ .Image }}", "x").Replace(string(text)), above: above})
	}
	return all
}

// objectsOf returns the objects in a text.
func objectsOf(t *testing.T, from rendered) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+from.text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", from.name, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// priorityOf returns the name of the PriorityClass of the Pods of an object, and whether it has Pods.
func priorityOf(object *unstructured.Unstructured) (name string, hasPods bool) {
	path := []string{"spec", "template", "spec"}
	switch object.GetKind() {
	case "Etcd", "Pod":
		path = []string{"spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
	default:
		return "", false
	}
	name, _, _ = unstructured.NestedString(object.Object, append(path, "priorityClassName")...)
	return name, true
}

// TestPriorities checks that all Pods of charts and components have a PriorityClass that the charts or components create, with
// the same value everywhere, and that control planes of Shoots cannot preempt the programs of the garden and of the seed.
func TestPriorities(t *testing.T) {
	all := append(charts(t), manifests(t, true, "config/seed/*.yaml")...)
	all = append(all, manifests(t, true, "test/landscape/fleet/manifests/etcd.yaml")...)
	all = append(all, manifests(t, false, "pkg/component/*/testdata/*.yaml")...)
	values := map[string]int64{
		"system-cluster-critical": 2000000000, "system-node-critical": 2000001000, // created by Kubernetes
		"gardener-garden-system-300": 999999300, // created by a gardener-operator, for the etcd-operator of a garden
	}
	for _, from := range all {
		for _, object := range objectsOf(t, from) {
			if object.GetKind() != "PriorityClass" {
				continue
			}
			value := numberOf(object.Object["value"])
			if before, found := values[object.GetName()]; found && before != value {
				t.Errorf("%s: PriorityClass %s has the value %d, elsewhere %d", from.name, object.GetName(), value, before)
			}
			values[object.GetName()] = value
		}
	}
	pods := 0
	for _, from := range all {
		for _, object := range objectsOf(t, from) {
			class, has := priorityOf(object)
			if !has {
				continue
			}
			pods++
			value, created := values[class]
			what := fmt.Sprintf("%s: %s %s has the PriorityClass %q", from.name, object.GetKind(), object.GetName(), class)
			switch {
			case !created:
				t.Errorf("%s, which nothing creates", what)
			case from.above && value <= highestControlPlane:
				t.Errorf("%s with the value %d: control planes preempt it", what, value)
			case !from.above && value > highestControlPlane && strings.HasPrefix(object.GetNamespace(), "shoot--"):
				t.Errorf("%s with the value %d: it preempts components of the seed", what, value)
			}
		}
	}
	if pods < 20 {
		t.Errorf("only %d objects with Pods were found", pods)
	}
	for name, value := range values {
		if strings.HasPrefix(name, "gardener-garden-system-") && value <= values["gardener-system-critical"] {
			t.Errorf("PriorityClass %s of the garden has the value %d, not more than gardener-system-critical", name, value)
		}
	}
}

// numberOf returns a number of a manifest.
func numberOf(value any) int64 {
	switch number := value.(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return 0
}
