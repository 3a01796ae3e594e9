package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// libraries are metrics of Go, client-go and controller-runtime with their labels. make monitoring checks that
// they exist.
var libraries = map[string][]string{
	"controller_runtime_active_workers":          {"controller"},
	"controller_runtime_webhook_latency_seconds": {"webhook"},
	"controller_runtime_webhook_panics_total":    nil,
	"controller_runtime_webhook_requests_total":  {"webhook", "code"},
	"go_memstats_heap_inuse_bytes":               nil,
	"leader_election_master_status":              {"name"},
	"process_cpu_seconds_total":                  nil,
	"process_resident_memory_bytes":              nil,
	"rest_client_requests_total":                 {"code", "method", "host"},
	"workqueue_depth":                            {"name", "controller", "priority"},
}

// ofTargets are labels that scrapes add.
var ofTargets = []string{"job", "instance", "cluster", "namespace", "pod"}

var (
	promWord   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\d[\w.]*|[a-zA-Z_:$][\w:]*|[^\s]`)
	promName   = regexp.MustCompile(`^[a-zA-Z_:][\w:]*$`)
	histograms = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// use is a metric in a query and the labels that select it.
type use struct {
	metric string
	labels []string
}

// usesIn returns the metrics of a query, and the labels by which it groups and joins.
func usesIn(query string) (uses []use, grouped []string) {
	words := promWord.FindAllString(query, -1)
	keywords := []string{"and", "or", "unless", "bool", "offset", "inf", "nan"}
	for i := 0; i < len(words); i++ {
		word, next := words[i], ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case slices.Contains([]string{"by", "without", "on", "ignoring", "group_left", "group_right"}, word):
			for i += 2; i < len(words) && words[i] != ")"; i++ {
				if words[i] != "," {
					grouped = append(grouped, words[i])
				}
			}
		case !promName.MatchString(word) || next == "(" || slices.Contains(keywords, strings.ToLower(word)):
		case next == "{":
			one := use{metric: word}
			for i += 2; i < len(words) && words[i] != "}"; i++ {
				if promName.MatchString(words[i]) {
					one.labels = append(one.labels, words[i])
				}
			}
			uses = append(uses, one)
		case i > 0 && (words[i-1] == "by" || words[i-1] == "without"): // an aggregation: its name is the next word
		case slices.Contains([]string{"sum", "max", "min", "count", "topk"}, word):
		default:
			uses = append(uses, use{metric: word})
		}
	}
	return uses, grouped
}

func TestUsesIn(t *testing.T) {
	query := `sum by (job, le) (rate(a_bucket{x="{b}", y=~"c"}[5m]) and on (instance) d) / max(e) > 3 unless f_total offset 5m`
	uses, grouped := usesIn(query)
	if got := fmt.Sprint(uses, grouped); got != "[{a_bucket [x y]} {d []} {e []} {f_total []}] [job le instance]" {
		t.Errorf("got %s", got)
	}
}

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// prefixes are those of the files in config/monitoring: of the resource-manager, and of flows.
var prefixes = []string{"", "flows-"}

func alerts(t *testing.T) []alert {
	t.Helper()
	var all []alert
	for _, prefix := range prefixes {
		var rules struct {
			Groups []struct {
				Name  string
				Rules []alert
			}
		}
		if err := yaml.UnmarshalStrict([]byte(read(t, "config/monitoring/"+prefix+"alerts.yaml")), &rules); err != nil {
			t.Fatal(err)
		}
		for _, group := range rules.Groups {
			all = append(all, group.Rules...)
		}
	}
	if len(all) < 20 {
		t.Fatalf("found only %d alerts", len(all))
	}
	return all
}

// queries returns the queries of the dashboards and of the alerts, by their purpose.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, prefix := range prefixes {
		var dashboard struct {
			Title  string
			Panels []struct {
				ID      int
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		if err := json.Unmarshal([]byte(read(t, "config/monitoring/"+prefix+"dashboard.json")), &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				found[fmt.Sprintf("%s, panel %d %s %s", dashboard.Title, panel.ID, panel.Title, target.RefID)] = target.Expr
			}
		}
	}
	if len(found) < 40 {
		t.Fatalf("found only %d queries in the dashboards", len(found))
	}
	for _, one := range alerts(t) {
		found["alert "+one.Alert] = one.Expr
	}
	return found
}

// TestQueriesUseMetricsThatExist checks that the dashboard and the alerts use metrics of the code, with labels
// that these have.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	metrics, err := parsed(t).metrics()
	if err != nil {
		t.Fatal(err)
	}
	known, used := map[string][]string{}, map[string]bool{}
	for name, labels := range libraries {
		known[name] = labels
	}
	for _, one := range metrics {
		known[one.Name] = one.Labels
	}
	for what, query := range queries(t) {
		uses, grouped := usesIn(query)
		ofQuery := append([]string{"le"}, ofTargets...)
		for _, one := range uses {
			name := one.metric
			if _, is := known[name]; !is {
				name = histograms.ReplaceAllString(name, "")
			}
			labels, is := known[name]
			if !is {
				t.Errorf("%s uses %s, which does not exist", what, one.metric)
			}
			used[name] = true
			for _, label := range one.labels {
				if !slices.Contains(labels, label) && !slices.Contains(ofTargets, label) {
					t.Errorf("%s selects %s by %s, which has %v", what, one.metric, label, labels)
				}
			}
			ofQuery = append(ofQuery, labels...)
		}
		for _, label := range grouped {
			if !slices.Contains(ofQuery, label) {
				t.Errorf("%s groups by %s, which is not a label of any of its metrics", what, label)
			}
		}
	}
	for _, one := range metrics {
		watched := strings.HasPrefix(one.Package, "pkg/managedresource") || strings.HasPrefix(one.Package, "pkg/health") || strings.HasPrefix(one.Package, "pkg/webhooks") || one.Package == "pkg/flow"
		if watched && !used[one.Name] {
			t.Errorf("%s of %s is neither in the dashboard nor in an alert", one.Name, one.Package)
		}
	}
}

// testedAlerts returns the alerts that a test makes fire, and those whose test shows that they do not fire.
func testedAlerts(t *testing.T) (fires, silent map[string]bool) {
	t.Helper()
	fires, silent = map[string]bool{}, map[string]bool{}
	for _, prefix := range prefixes {
		var tests struct {
			Tests []struct {
				Name          string
				AlertRuleTest []struct {
					AlertName string
					ExpAlerts []any `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, "config/monitoring/"+prefix+"alerts_test.yaml")), &tests); err != nil {
			t.Fatal(err)
		}
		for _, test := range tests.Tests {
			for _, each := range test.AlertRuleTest {
				if len(each.ExpAlerts) > 0 {
					fires[each.AlertName] = true
				} else {
					silent[each.AlertName] = true
				}
			}
		}
	}
	return fires, silent
}

// TestAlertsAreComplete checks that each alert has a severity, annotations, a section in the runbook, and a test
// of each kind.
func TestAlertsAreComplete(t *testing.T) {
	fires, silent := testedAlerts(t)
	runbook, sections := read(t, "docs/runbook.md"), 0
	for _, one := range alerts(t) {
		if !fires[one.Alert] || !silent[one.Alert] {
			t.Errorf("%s has no test that it fires, or no test that it does not fire", one.Alert)
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, one.Labels["severity"]) || one.Annotations["summary"] == "" || one.Annotations["description"] == "" {
			t.Errorf("%s lacks its severity, summary or description", one.Alert)
		}
		if one.Annotations["runbook_url"] != "docs/runbook.md#"+strings.ToLower(one.Alert) {
			t.Errorf("%s has the runbook %q", one.Alert, one.Annotations["runbook_url"])
		}
		_, section, found := strings.Cut(runbook, "\n### "+one.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		if !found || !strings.Contains(section, "**Means.**") || !strings.Contains(section, "**Look.**") || !strings.Contains(section, "**Do.**") {
			t.Errorf("docs/runbook.md has no complete section %s", one.Alert)
		}
		sections++
	}
	if headings := strings.Count(runbook, "\n### "); headings != sections {
		t.Errorf("docs/runbook.md has %d sections for %d alerts", headings, sections)
	}
}
