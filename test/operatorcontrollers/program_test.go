package operatorcontrollers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/cmd/operator/app"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

// TestProgram runs the program with the rights of its chart: it serves the webhooks, issues their certificate, and makes the API server
// trust it.
func TestProgram(t *testing.T) {
	f := newFixture(t)
	configurations := []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gardener-operator"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gardener-operator"}},
	}
	t.Cleanup(func() {
		for _, object := range configurations { // the other tests have no Service for them
			kit.Must(t, client.IgnoreNotFound(f.client.Delete(context.Background(), object)))
		}
	})
	charts.Apply(t, f.client, "operator", map[string]any{}, func(object *unstructured.Unstructured) bool {
		return charts.IsRight(object) || strings.HasSuffix(object.GetKind(), "WebhookConfiguration")
	})
	kubeconfig := kit.AccountKubeconfig(f, f.garden.Config(), f.client, "garden", "gardener-operator")
	path, webhooks, health := filepath.Join(t.TempDir(), "config.yaml"), kit.FreePort(t), kit.FreePort(t)
	kit.Must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: operator.config.gardener.cloud/v1alpha1
kind: OperatorConfiguration
runtimeClientConnection: {kubeconfig: %s}
logFormat: text
server:
  webhooks: {bindAddress: 127.0.0.1, port: %d}
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
`, kubeconfig, webhooks, health, kit.FreePort(t)), 0o600))
	program, err := controlplane.BuildProgram[app.Program]()
	kit.Must(t, err)
	process, err := f.garden.StartProcess("operator", program, "--config", path)
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, process.Stop(0))
		if log, err := os.ReadFile(filepath.Join(f.garden.Dir(), "operator.log")); err == nil && t.Failed() {
			t.Logf("log of the operator:\n%s", log)
		}
	})
	kit.EventuallyTrue(t, "the operator is ready", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", health), http.NoBody)
		kit.Must(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		kit.Must(t, response.Body.Close())
		return response.StatusCode == http.StatusOK
	})
	kit.Eventually(t, "the API server trusts the webhooks", func() string {
		for _, object := range configurations {
			if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
		}
		mutating, _ := configurations[0].(*admissionregistrationv1.MutatingWebhookConfiguration)
		validating, _ := configurations[1].(*admissionregistrationv1.ValidatingWebhookConfiguration)
		for i := range mutating.Webhooks {
			if len(mutating.Webhooks[i].ClientConfig.CABundle) == 0 {
				return mutating.Webhooks[i].Name + " has no bundle"
			}
		}
		for i := range validating.Webhooks {
			if len(validating.Webhooks[i].ClientConfig.CABundle) == 0 {
				return validating.Webhooks[i].Name + " has no bundle"
			}
		}
		return ""
	})
}
