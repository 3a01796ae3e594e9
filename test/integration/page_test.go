package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestPageIsServed checks that the resource-manager serves the page in every replica, with the viewer's rights
// instead of its own, and does not disclose the viewer's token.
func TestPageIsServed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := kit.NewViewer(f, f.client, f.namespace, "viewer")
	ports := []int{kit.FreePort(t), kit.FreePort(t)}
	var replicas []*process
	for i, certificate := range []string{"", ", tls: {serverCertDir: $CERTIFICATES}"} { // the first one generates its own
		replicas = append(replicas, f.startWith(func(kubeconfig, healthPort, metricsPort string) string {
			return fmt.Sprintf(`apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: %s, namespaces: [%s], qps: -1}
logLevel: debug
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %s}
  metrics: {bindAddress: 127.0.0.1, port: %s}
  ui: {bindAddress: 127.0.0.1, port: %d%s}
leaderElection: {resourceNamespace: %s}
`, kubeconfig, f.namespace, healthPort, metricsPort, ports[i], certificate, f.namespace)
		}))
	}
	f.manage("set", f.configMap("one", "1"))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(replicas[1].Authority.Bundle())
	for i, config := range []*tls.Config{{InsecureSkipVerify: true}, {RootCAs: trusted}} { // the first one has a self-signed certificate
		page := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		base := fmt.Sprintf("https://127.0.0.1:%d", ports[i])
		kit.Eventually(t, "the ManagedResource is listed", func() string {
			line, status := kit.View(f, page, base+"/api/changes", token)
			if status != http.StatusOK || !strings.Contains(line, `"name":"set"`) || !strings.Contains(line, `"state":"Ready"`) {
				return fmt.Sprintf("status %d: %s", status, line)
			}
			return ""
		})
		for path, want := range map[string]string{
			"objects": "you may not read it", "diff": "cannot get resource", // the resource-manager itself could
			"history": "[", "summary": `"state":"Ready"`,
		} {
			line, status := kit.View(f, page, base+"/api/resources/"+f.namespace+"/set/"+path, token)
			if status != http.StatusOK || !strings.Contains(line, want) || strings.Contains(line, token) {
				t.Errorf("%s: %d %s", path, status, line)
			}
		}
		if line, status := kit.View(f, page, base+"/api/changes", ""); status != http.StatusUnauthorized || strings.Contains(line, "set") {
			t.Errorf("without a token: %d %s", status, line)
		}
		p := replicas[i]
		if status, body := p.Get(p.Metrics, "/metrics"); status != http.StatusOK || !strings.Contains(body, `resource_manager_ui_logins_total{result="accepted"} 1`) || strings.Contains(body, token) {
			t.Errorf("the metrics do not count the viewer, or disclose the token: %d", status)
		}
		if log := p.Written.String(); !strings.Contains(log, "Serving the page with ManagedResources") || strings.Contains(log, token) || strings.Contains(log, token[strings.LastIndex(token, "."):]) {
			t.Error("the log does not report that the page is served, or discloses the token")
		}
	}
	for _, p := range replicas {
		p.Stop() // even if pages are open
	}
}
