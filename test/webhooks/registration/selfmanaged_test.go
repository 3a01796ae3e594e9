package registration

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestAllReplicasServeTheCertificate checks that a replica that does not lead serves the certificate of the leader, and is ready.
func TestAllReplicasServeTheCertificate(t *testing.T) {
	t.Parallel()
	cp := shared.Get(t)
	c, err := client.New(cp.Config(), client.Options{})
	kit.Must(t, err)
	prepare.Do((&fixture{T: t, client: c}).prepare)
	namespace := kit.NewNamespace(t, c, "replicas", nil)
	for range 2 { // waits until each is ready; the first one leads
		kit.StartManagerWith(t, cp.Kubeconfig(), selfManaged(namespace, "nothing"))
	}
}

// TestSelfManagedCertificate checks that a resource-manager that starts without a certificate creates one, injects its bundle into the
// webhook configurations, and restores both after changes by other clients. API servers reach it under a DNS name that needs no name
// server.
func TestSelfManagedCertificate(t *testing.T) {
	t.Parallel()
	cp := shared.Get(t)
	c, err := client.New(cp.Config(), client.Options{})
	kit.Must(t, err)
	f := &fixture{T: t, client: c}
	prepare.Do(f.prepare)
	secret := client.ObjectKey{Namespace: kit.NewNamespace(t, c, "certificates", nil), Name: "webhooks"}
	f.process = kit.StartManagerWith(t, cp.Kubeconfig(), selfManaged(secret.Namespace, "testselfmanagedcertificate"))
	f.registerAt(fmt.Sprintf("https://localhost:%d", f.process.WebhookPort), nil)
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "testselfmanagedcertificate"}}
	bundle := func() []byte {
		kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration))
		return configuration.Webhooks[0].ClientConfig.CABundle
	}
	first := bundle()

	t.Log("another client empties the bundle")
	kit.Must(t, c.Patch(t.Context(), configuration, client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`))))
	kit.EventuallyTrue(t, "the bundle is back", func() bool { return bytes.Equal(bundle(), first) })

	t.Log("another client applies the configuration again, without a bundle")
	again := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: configuration.Name}, Webhooks: configuration.Webhooks[:1],
	}
	again.Webhooks[0].ClientConfig.CABundle = nil
	again.Webhooks[0].TimeoutSeconds = ptr.To[int32](9)
	kit.Must(t, c.Patch(t.Context(), again, client.Apply, client.FieldOwner("deployer"), client.ForceOwnership)) //nolint:staticcheck // apply configurations have no client here
	if got := bundle(); !bytes.Equal(got, first) || *configuration.Webhooks[0].TimeoutSeconds != 9 {
		t.Errorf("the webhook is %+v", configuration.Webhooks[0])
	}

	t.Log("another client deletes the Secret")
	kit.Must(t, c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}))
	kit.EventuallyTrue(t, "a new certificate is served and trusted", func() bool {
		got := bundle()
		return len(got) > 0 && !bytes.Equal(got, first)
	})
	namespace := f.namespace(nil)
	kit.Eventually(t, "the API server calls the webhook again", func() string {
		return kit.TextOf(c.Create(t.Context(), deployment(namespace, "again", 2), client.DryRunAll))
	})
	made := &corev1.Secret{}
	kit.Must(t, c.Get(t.Context(), secret, made))
	if strings.Contains(f.process.Written.String(), "PRIVATE KEY") || len(made.Data["tls.key"]) == 0 {
		t.Error("the key is in the log, or missing from the Secret")
	}
	kit.Must(t, client.IgnoreNotFound(c.Delete(t.Context(), made)))
	kit.EventuallyTrue(t, "the Secret is created again", func() bool { return !apierrors.IsNotFound(c.Get(t.Context(), secret, made)) })
}

// selfManaged is the configuration of a resource-manager that manages its own certificate.
func selfManaged(namespace, configuration string) string {
	return `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: $KUBECONFIG, qps: -1}
leaderElection: {resourceNamespace: ` + namespace + `}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: $HEALTH_PORT}
  metrics: {bindAddress: 127.0.0.1, port: $METRICS_PORT}
  webhooks:
    bindAddress: 127.0.0.1
    port: $WEBHOOK_PORT
    tls: {selfManaged: {secretNamespace: ` + namespace + `, secretName: webhooks, dnsNames: [localhost], webhookConfigurations: [` + configuration + `]}}
` + enabled
}
