package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/kit"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestRun runs a small measurement on a real garden, once for each form of the report.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	opts, err := parseOptions([]string{
		"--shoots", "40", "--turns", "2", "--changes", "5", "--watchers", "3", "--writers", "4", "--memory=false", "-o", "json",
	}, t.Output())
	kit.Must(t, err)
	var out bytes.Buffer
	kit.Must(t, run(t.Context(), opts, &out, t.Output()))
	var found results
	kit.Must(t, json.Unmarshal(out.Bytes(), &found))
	if len(found.Figures) != 5 {
		t.Fatalf("%d figures, want 5:\n%s", len(found.Figures), &out)
	}
	for _, figure := range found.Figures {
		if figure.APIServer <= 0 || figure.CRD <= 0 || len(figure.Turns[0]) != 2 || len(figure.Turns[1]) != 2 {
			t.Errorf("%s: %+v", figure.Name, figure)
		}
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	var r results
	r.add(phase{name: "slower", unit: "ms"}, [2][]float64{{3, 1, 5}, {1, 2}})
	r.add(phase{name: "allowed", unit: "ms", allowance: 2}, [2][]float64{{3}, {1}})
	r.add(phase{name: "faster", unit: "objects/s", more: true}, [2][]float64{{200}, {100}})
	var text bytes.Buffer
	kit.Must(t, r.publish("table", &text))
	for _, want := range []string{
		"slower   ms         3.00        1.50  2.00   at most the CRD's         no",
		"allowed  ms         3.00        1.00  3.00   at most the CRD's + 2 ms  yes",
		"faster   objects/s  200         100   2.00   at least the CRD's        yes",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &text)
		}
	}
}

func TestParseOptions(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-o yaml": "unknown form", "--turns 0": "at least 1", "--shoots 50": "at least --changes", "shoots": "unexpected argument",
	} {
		if _, err := parseOptions(strings.Fields(args), t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", args, err, want)
		}
	}
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	found, err := definition()
	kit.Must(t, err)
	workers := found.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["provider"].Properties["workers"]
	if workers.Items == nil || workers.Items.Schema.Properties["maxSurge"].XIntOrString != true || workers.XListType == nil {
		t.Errorf("the schema of workers: %+v", workers)
	}
}

func TestReadEvents(t *testing.T) {
	t.Parallel()
	stream := `{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}` + "\n" + `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"9"}}}` + "\n"
	for most, want := range map[int]string{1: "7", 2: "9", 3: "9"} {
		seen, last, err := readEvents(strings.NewReader(stream), most)
		if version := eventVersion.FindSubmatch(last); err != nil || seen != min(most, 2) || string(version[1]) != want {
			t.Errorf("of %d events: %d, the last one %s, error %v", most, seen, last, err)
		}
	}
}
