package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

func parsed(t *testing.T) code {
	t.Helper()
	c, err := readCode(repository)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestGeneratedFilesAreCurrent checks that the generated files match the code and the rules. After a change, run
// make generate.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate(repository)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		if read(t, path) != content {
			t.Errorf("%s differs from the output of make generate", path)
		}
	}
}

// TestReasonsAreConstants checks that all reasons are constants. Other reasons would be missing in the reference.
func TestReasonsAreConstants(t *testing.T) {
	c := parsed(t)
	if found := c.literalReasons(); len(found) > 0 {
		t.Errorf("reasons as literals: %v", found)
	}
	used := regexp.MustCompile(`\bReason[A-Z]\w*`)
	reference := read(t, "docs/reference.md")
	for name, value := range c[resourcesAPI].constants {
		if used.MatchString(name) && !strings.Contains(reference, value+"` |") {
			t.Errorf("%s (%s) is not in docs/reference.md", name, value)
		}
	}
}

// TestPackagesWithEventsNameThem checks that each package that writes Events marks its reasons, or uses those of
// another package.
func TestPackagesWithEventsNameThem(t *testing.T) {
	c, elsewhere := parsed(t), map[string]string{
		"pkg/health/controller": resourcesAPI, // the reasons of conditions
		"pkg/netpol/controller": "pkg/netpol",
		"pkg/eventlimit":        "", // passes Events on
		"pkg/leaderfence":       "", // passes those of the leader election on
	}
	marked := map[string]bool{resourcesAPI: true, "": true}
	writing := 0
	for _, directory := range c.directories() {
		for _, file := range c[directory].files {
			for _, comment := range file.Comments {
				marked[directory] = marked[directory] || eventsMarker.MatchString(comment.Text())
			}
		}
	}
	for _, directory := range c.directories() {
		writes := false
		for name := range c[directory].calls {
			writes = writes || name == "Eventf"
		}
		for _, file := range c[directory].files {
			for _, spec := range file.Imports {
				writes = writes || spec.Path.Value == `"k8s.io/api/events/v1"` && directory == "pkg/node/criticalcomponents"
			}
		}
		if !writes {
			continue
		}
		writing++
		from, is := elsewhere[directory]
		if !is {
			from = directory
		}
		if !marked[from] {
			t.Errorf("%s writes Events, and %s has no constants marked with +events:on=", directory, from)
		}
	}
	if writing < 7 {
		t.Errorf("found only %d packages that write Events", writing)
	}
}

func TestReasonOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pkg", "apis", "resources", "v1alpha1")
	if err := os.MkdirAll(file, 0o755); err != nil {
		t.Fatal(err)
	}
	for content, wanted := range map[string]string{
		"// ReasonA goes with status False of ResourcesHealthy: it is\n\t// bad. To do: mend it.\n\tReasonA = \"AB\"": "AB|ResourcesHealthy False|It is bad.|Mend it.",
		"// ReasonA goes with status False: bad.\n\tReasonA = \"AB\"":                                                 "does not say what to do",
		"// ReasonA is bad.\n\tReasonA = \"AB\"":                                                                      "is not of the form",
		"ReasonA = \"AB\"":                                                                                            "is not of the form",
	} {
		source := "package v1alpha1\n\n// The reasons of X.\nconst (\n\t" + content + "\n)\n"
		if err := os.WriteFile(filepath.Join(file, "a.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readCode(strings.TrimSuffix(file, filepath.FromSlash("/pkg/apis/resources/v1alpha1")))
		if err != nil {
			t.Fatal(err)
		}
		reasons, err := c.reasons("The reasons of X")
		got := ""
		if err != nil {
			got = err.Error()
		}
		for _, one := range reasons {
			got += strings.Join([]string{one.Name, one.Status, one.Meaning, one.ToDo}, "|")
		}
		if !strings.Contains(got, wanted) {
			t.Errorf("%q results in %q, want %q", content, got, wanted)
		}
	}
}

// TestMetricsAreFound checks some metrics of every form.
func TestMetricsAreFound(t *testing.T) {
	metrics, err := parsed(t).metrics()
	if err != nil {
		t.Fatal(err)
	}
	for name, wanted := range map[string]string{
		"resource_manager_objects":                            "gauge state",
		"resource_manager_managed_resource_corrections_total": "counter managed_resource",
		"resource_manager_drift_detected_total":               "counter group kind manager",
		"resource_manager_reconcile_duration_seconds":         "histogram outcome",
		"resource_manager_tokens":                             "gauge state",
		"resource_manager_webhook_decisions_total":            "counter webhook decision",
	} {
		i := slices.IndexFunc(metrics, func(one metric) bool { return one.Name == name })
		if i < 0 || metrics[i].Kind+" "+strings.Join(metrics[i].Labels, " ") != wanted || metrics[i].Help == "" {
			t.Errorf("%s is %+v, want %s", name, metrics[max(i, 0)], wanted)
		}
	}
	for _, one := range metrics {
		known := slices.ContainsFunc([]string{"resource_manager_", "node_agent_", "flow_", "tunnel_", "gateway_", "discovery_server_"}, func(prefix string) bool { return strings.HasPrefix(one.Name, prefix) })
		if !known || one.Help == "" || one.Kind == "" {
			t.Errorf("%+v is incomplete", one)
		}
	}
}
