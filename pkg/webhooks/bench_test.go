package webhooks

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// BenchmarkRequest measures a whole request in the resource-manager, except for HTTPS, with the webhook for seccomp profiles.
func BenchmarkRequest(b *testing.B) {
	body, err := os.ReadFile("testdata/review.json")
	if err != nil {
		b.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{})
	facts := Facts{Context: b.Context(), Config: &configv1alpha1.WebhooksConfiguration{}}
	if _, err := Register(server, []Webhook{seccompProfile()}, facts, webhookserver.NewMetrics(prometheus.NewRegistry())); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/webhooks/seccomp-profile", strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		server.WebhookMux().ServeHTTP(response, request)
		if !strings.Contains(response.Body.String(), `"patchType":"JSONPatch"`) {
			b.Fatal(response.Body.String())
		}
	}
}
