package operatorcontrollers

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/webhook"
	"github.com/trellis-k8s/trellis/test/kit"
)

// serveWebhooks serves the table, and waits until the API server calls it. Requests fail while broken is set.
func (f *fixture) serveWebhooks(broken *atomic.Bool) {
	f.Helper()
	table := webhook.Table(f.client)
	handlers := map[string]http.Handler{}
	for _, row := range table {
		handlers[row.Path] = http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if broken.Load() {
				http.Error(writer, "broken", http.StatusInternalServerError)
				return
			}
			row.Handler.ServeHTTP(writer, request)
		})
	}
	server := kit.ServeWebhooks(f, handlers)
	configuration := webhook.Configuration(func(path string) admissionregistrationv1.WebhookClientConfig { return server.ClientConfig(path) })
	for _, object := range []client.Object{configuration.Mutating(table), configuration.Validating(table)} {
		kit.Must(f, f.client.Create(f.Context(), object))
		f.Cleanup(func() { kit.Must(f, client.IgnoreNotFound(f.client.Delete(context.Background(), object))) })
	}
	kit.Eventually(f, "the API server calls the webhooks", func() string {
		invalid := example[operatorv1alpha1.Extension](f.T, "extension")
		invalid.Name = "invalid"
		invalid.Spec.Deployment.Resources = nil // the values refer to one
		if err := f.client.Create(f.Context(), invalid, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "is not in resources") {
			return "an invalid Extension was not refused: " + kit.TextOf(err)
		}
		return ""
	})
}

// TestWebhooks checks with the API server that the webhooks are called for what they check, and for nothing else.
func TestWebhooks(t *testing.T) {
	f := newFixture(t)
	broken := &atomic.Bool{}
	f.serveWebhooks(broken)
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	garden, extension := example[operatorv1alpha1.Garden](t, "garden"), example[operatorv1alpha1.Extension](t, "extension")
	garden.Spec.VirtualCluster.Gardener.GardenerAPIServer.AuditConfig.AuditPolicy.ConfigMapRef.Name = "webhooks-audit"

	// The API server calls validating webhooks in any order, so that each request is wrong in one way only.
	kit.Must(t, f.client.Create(t.Context(), extension))
	defer f.remove(extension)
	refused(f.client.Create(t.Context(), garden.DeepCopy()), "ConfigMap webhooks-audit")
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "webhooks-audit"}, Data: map[string]string{
		"policy": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n",
	}}
	kit.Must(t, f.client.Create(t.Context(), policy))
	defer f.remove(policy)
	unknown := garden.DeepCopy()
	unknown.Spec.Extensions[0].Type = "unknown"
	refused(f.client.Create(t.Context(), unknown), "no Extension offers this type")
	kit.Must(t, f.client.Create(t.Context(), garden))
	defer f.remove(garden)
	if garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer.EventTTL == nil {
		t.Error("the Garden has no defaults")
	}

	second := garden.DeepCopy()
	second.Name, second.ResourceVersion, second.UID = "second", "", ""
	refused(f.client.Create(t.Context(), second), "only one Garden")
	refused(f.client.Delete(t.Context(), garden.DeepCopy()), "confirmation.gardener.cloud/deletion")
	refused(f.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}), "delete the Garden first")
	changed := policy.DeepCopy()
	changed.Data["policy"] = "{}"
	refused(f.client.Update(t.Context(), changed), "ConfigMap webhooks-audit")
	changed.Data = nil
	refused(f.client.Update(t.Context(), changed), "no data with the key policy")

	// Other ConfigMaps do not need the webhooks.
	broken.Store(true)
	refused(f.client.Update(t.Context(), changed), "broken")
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "webhooks-other"}}
	kit.Must(t, f.client.Create(t.Context(), other))
	other.Data = map[string]string{"a": "b"}
	kit.Must(t, f.client.Update(t.Context(), other))
	f.remove(other)
	broken.Store(false)
}
