package monitoring

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// step is the distance between points of a panel. Scraped is the scrape interval.
const (
	step    = 5 * time.Second
	scraped = 2 * time.Second
)

// prometheus is a running Prometheus.
type prometheus struct {
	testing.TB
	url string
}

// startPrometheus starts a Prometheus that scrapes addresses, with a rule file.
func startPrometheus(t *testing.T, rules string, addresses ...string) *prometheus {
	t.Helper()
	directory := t.TempDir()
	rules, err := filepath.Abs(rules)
	kit.Must(t, err)
	config := filepath.Join(directory, "prometheus.yml")
	kit.Must(t, os.WriteFile(config, fmt.Appendf(nil, `global: {scrape_interval: %s, evaluation_interval: %s}
rule_files: [%q]
scrape_configs:
- job_name: resource-manager
  static_configs: [{targets: [%s]}]
`, scraped, scraped, rules, `"`+strings.Join(addresses, `", "`)+`"`), 0o600))
	p := &prometheus{TB: t, url: "http://127.0.0.1:" + strconv.Itoa(kit.FreePort(t))}
	log := &kit.Output{}
	command := exec.CommandContext(t.Context(), "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(directory, "data"),
		"--web.listen-address", strings.TrimPrefix(p.url, "http://"))
	command.Stdout, command.Stderr = log, log
	kit.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait() // the context of the test kills it
		if t.Failed() {
			t.Logf("log of Prometheus:\n%s", log)
		}
	})
	kit.EventuallyTrue(t, "Prometheus is ready", func() bool {
		response, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	return p
}

// get calls the HTTP API and decodes its data.
func (p *prometheus) get(path string, parameters url.Values, into any) error {
	response, err := http.Get(p.url + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	body := kit.ReadAll(p, response.Body)
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s", answer.Error)
	}
	return nil
}

// series is a series of a result: times and values.
type series struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
}

// values returns the numbers of a series.
func (s series) numbers() []float64 {
	var numbers []float64
	for _, point := range s.Values {
		text, _ := point[1].(string)
		if number, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// query evaluates an expression over a duration that ends now.
func (p *prometheus) query(expression string, over time.Duration) ([]series, error) {
	now := time.Now()
	var data struct{ Result []series }
	err := p.get("/api/v1/query_range", url.Values{
		"query": {expression}, "step": {step.String()},
		"start": {strconv.FormatInt(now.Add(-over).Unix(), 10)}, "end": {strconv.FormatInt(now.Unix(), 10)},
	}, &data)
	return data.Result, err
}

// rule is a rule that Prometheus evaluates.
type rule struct {
	Name, State, Health, LastError, LastEvaluation string
}

func (p *prometheus) rules() ([]rule, error) {
	var data struct{ Groups []struct{ Rules []rule } }
	err := p.get("/api/v1/rules", nil, &data)
	var rules []rule
	for _, group := range data.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, err
}
