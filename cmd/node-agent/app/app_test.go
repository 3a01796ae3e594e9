package app

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/agent"
)

func TestCommands(t *testing.T) {
	for _, test := range []struct{ args, out, fail string }{
		{"--version", "v1", ""},
		{"--help", "bootstrap", ""},
		{"check --config-dir=" + filepath.Join(t.TempDir(), "none"), "", "config.yaml: no such file"},
		{"--config=/none", "", "/none: no such file"},
		{"reset more", "", "unknown command"},
	} {
		command, out := newCommand("v1"), &bytes.Buffer{}
		command.SetArgs(strings.Fields(test.args))
		command.SetOut(out)
		err := command.ExecuteContext(t.Context())
		if !strings.Contains(out.String(), test.out) || (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%s: printed %q: %v", test.args, out, err)
		}
	}
}

func TestServers(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := agent.NewMetrics(registry)
	metrics.Ran("lease", true)
	ready := false
	health, exposed := handlers(registry, func() bool { return ready })
	get := func(handler http.Handler, path string) (int, string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		body, err := io.ReadAll(recorder.Body)
		if err != nil {
			t.Fatal(err)
		}
		return recorder.Code, string(body)
	}
	if code, _ := get(health, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz answers %d", code)
	}
	if code, text := get(health, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "certificate") {
		t.Errorf("/readyz answers %d %s", code, text)
	}
	ready = true
	if code, _ := get(health, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d", code)
	}
	if _, text := get(exposed, "/metrics"); !strings.Contains(text, `node_agent_controller_errors_total{controller="lease"} 1`) {
		t.Errorf("/metrics answers %s", text)
	}
}
