// Package monitoring checks the dashboard and the alerts against a real Prometheus that scrapes a resource-manager under load. It runs
// with make monitoring.
package monitoring

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

var (
	enabled = flag.Bool("monitoring", false, "run Prometheus, which has to be in the PATH")
	results = flag.String("monitoring.out", "", "a file for the results of the dashboard's queries, as JSON")
	shots   = flag.String("monitoring.shots", "", "a directory for pictures of the dashboard, taken with Chromium")
	redraw  = flag.String("monitoring.redraw", "", "a file written by -monitoring.out; pictures are taken of its results")
	minutes = flag.Duration("monitoring.load", 90*time.Second, "minimum duration of the load")
)

var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// configuration of the resource-manager under load: all parts that do not need the kinds of other projects.
const configuration = `
leaderElection: {leaderElect: true, resourceNamespace: default}
controllers:
  garbageCollector: {enabled: true}
  csrApprover: {enabled: true}
  tokenRequestor: {enabled: true}
webhooks:
  highAvailabilityConfig: {enabled: true}
  seccompProfile: {enabled: true}
  podTopologySpreadConstraints: {enabled: true}
  nodeAgentAuthorizer: {enabled: true}
`

// panel is a panel of the dashboard with the results of its queries.
type panel struct {
	ID          int
	Type, Title string
	Targets     []*target
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Min        *float64
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
			Custom struct {
				Stacking          struct{ Mode string }
				ScaleDistribution struct{ Type string }
			}
		}
	}
}

type target struct {
	Expr, LegendFormat string
	Result             []series
}

func panels(t *testing.T) []*panel {
	t.Helper()
	content, err := os.ReadFile("../../config/monitoring/dashboard.json")
	kit.Must(t, err)
	var dashboard struct{ Panels []*panel }
	kit.Must(t, json.Unmarshal(content, &dashboard))
	return dashboard.Panels
}

// monitored returns a control plane with the ManagedResource definition, for tests that need the flag -monitoring.
func monitored(t *testing.T) (*controlplane.ControlPlane, client.Client) {
	t.Helper()
	if !*enabled {
		t.Skip("only with -monitoring: make monitoring")
	}
	cp := shared.Get(t)
	kit.DefineManagedResources(t, cp.Config())
	c, err := client.New(cp.Config(), client.Options{Scheme: console.Scheme()})
	kit.Must(t, err)
	return cp, c
}

// TestDashboardAndAlerts checks that every query of the dashboard has results, every rule is evaluated, and alerts
// for the failures here become pending.
func TestDashboardAndAlerts(t *testing.T) {
	cp, c := monitored(t)
	process := kit.StartManager(t, cp.Kubeconfig(), nil, configuration)
	p := startPrometheus(t, "../../config/monitoring/alerts.yaml", process.Metrics)
	l := &load{T: t, client: c, process: process, namespace: kit.NewNamespace(t, c, "monitoring", nil)}
	l.register()
	l.settle()

	begin, all := time.Now(), panels(t)
	for time.Since(begin) < *minutes {
		l.disturb()
		<-time.After(300 * time.Millisecond)
	}
	kit.EventuallyWithin(t, 5*time.Minute, "no panel is empty, and all rules are evaluated", func() string {
		l.disturb()
		return strings.Join(slices.Concat(p.empty(all, l.namespace+"/shop-0"), p.lacking()), "\n")
	})
	p.checkRunbook()
	if *results != "" {
		content, err := json.Marshal(all)
		kit.Must(t, err)
		kit.Must(t, os.WriteFile(*results, content, 0o600))
	}
	if *shots != "" {
		draw(t, all, *shots)
	}
}

// TestRedraw takes pictures of earlier results, with the titles, units and legends of the current dashboard.
func TestRedraw(t *testing.T) {
	if *redraw == "" || *shots == "" {
		t.Skip("only with -monitoring.redraw and -monitoring.shots")
	}
	content, err := os.ReadFile(*redraw)
	kit.Must(t, err)
	var former []*panel
	kit.Must(t, json.Unmarshal(content, &former))
	all := panels(t)
	for _, p := range all {
		for _, old := range former {
			if old.ID != p.ID {
				continue
			}
			for i := range min(len(old.Targets), len(p.Targets)) {
				p.Targets[i].Result = old.Targets[i].Result
			}
		}
	}
	draw(t, all, *shots)
}

// empty returns the queries of panels that have no results for a ManagedResource, and keeps the results of the
// others.
func (p *prometheus) empty(all []*panel, managedResource string) (problems []string) {
	// the values of Grafana's variables
	variables := strings.NewReplacer("$__rate_interval", "20s", "$__range", "5m", "$job", ".+", "$managed_resource", managedResource)
	for _, panel := range all {
		for _, target := range panel.Targets {
			result, err := p.query(variables.Replace(target.Expr), 2*time.Minute)
			target.Result = result
			if !slices.ContainsFunc(result, func(one series) bool { return len(one.numbers()) > 0 }) {
				problems = append(problems, fmt.Sprintf("panel %q shows nothing (%v): %s", panel.Title, err, target.Expr))
			}
		}
	}
	return problems
}

// inRunbook matches queries.
var inRunbook = regexp.MustCompile("`((?:topk|sum|resource_manager_)[^`]*)`")

// checkRunbook checks that Prometheus accepts all queries of docs/runbook.md.
func (p *prometheus) checkRunbook() {
	p.Helper()
	content, err := os.ReadFile("../../docs/runbook.md")
	kit.Must(p, err)
	queries := inRunbook.FindAllStringSubmatch(strings.ReplaceAll(string(content), "\n", " "), -1)
	for _, query := range queries {
		if _, err := p.query(query[1], time.Minute); err != nil {
			p.Errorf("%s: %v", query[1], err)
		}
	}
	if len(queries) < 5 {
		p.Errorf("found only the queries %v", queries)
	}
}

// alarming are alerts for the failures here. Their pending times exceed the duration of the test.
var alarming = []string{"ManagedResourceObjectsFailed", "ManagedResourceUnhealthy", "ManagedResourceProgressing", "ResourceManagerObjectContested", "ResourceManagerConflicts", "ResourceManagerWebhookFails"}

// lacking returns the rules that are not evaluated, and the alerts that are not pending.
func (p *prometheus) lacking() (problems []string) {
	rules, err := p.rules()
	if err != nil || len(rules) < 20 {
		problems = append(problems, fmt.Sprintf("%d rules: %v", len(rules), err))
	}
	for _, rule := range rules {
		if rule.Health != "ok" {
			problems = append(problems, fmt.Sprintf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError))
		}
		if slices.Contains(alarming, rule.Name) && rule.State == "inactive" {
			problems = append(problems, fmt.Sprintf("alert %s is inactive", rule.Name))
		}
	}
	return problems
}

// TestRules checks that promtool accepts the rules and that their tests pass.
func TestRules(t *testing.T) {
	if !*enabled {
		t.Skip("only with -monitoring: make monitoring")
	}
	for _, arguments := range [][]string{
		{"check", "rules", "alerts.yaml", "flows-alerts.yaml"}, {"test", "rules", "alerts_test.yaml", "flows-alerts_test.yaml"},
	} {
		command := exec.CommandContext(t.Context(), "promtool", arguments...)
		command.Dir = filepath.FromSlash("../../config/monitoring")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", arguments, err, output)
		}
	}
}
