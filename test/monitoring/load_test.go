package monitoring

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
	"github.com/trellis-k8s/trellis/pkg/webhooks/seccompprofile"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/test/kit"
)

// fleet is the number of healthy ManagedResources.
const fleet = 40

// load is the load while Prometheus scrapes: a fleet, and everything that the dashboard shows.
type load struct {
	*testing.T
	client    client.Client
	process   *kit.Process
	namespace string
	round     int
}

// deliver creates or changes a ManagedResource.
func (l *load) deliver(name, manifests string) {
	l.Helper()
	ctx := l.Context()
	manifests = strings.ReplaceAll(manifests, "$NS", l.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}, StringData: map[string]string{"objects.yaml": manifests}}
	if err := l.client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		kit.Must(l, l.client.Update(ctx, secret))
		return
	}
	kit.Must(l, l.client.Create(ctx, &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: name}}},
	}))
}

func configMap(name, value string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: $NS}\ndata: {key: %s}\n", name, value)
}

func deployment(name string, replicas int) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: $NS}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: "example.org/c:1"}]}
`, name, replicas)
}

// settle creates the fleet. Two of its ManagedResources fail: the objects of one are refused, and the Deployment
// of the other cannot run.
func (l *load) settle() {
	for i := range fleet {
		l.deliver(fmt.Sprintf("shop-%d", i), configMap(fmt.Sprintf("a-%d", i), "good")+configMap(fmt.Sprintf("b-%d", i), "good")+
			deployment(fmt.Sprintf("shop-%d", i), 0))
	}
	l.deliver("failing", configMap("Bad_Name", "x")+configMap("failing", "x"))
	l.deliver("unhealthy", deployment("unhealthy", 1))
}

// disturb makes the changes of one round: one manager changes many objects, a rival changes one object, a manifest
// changes, another one contains an object with another owner, and Pods pass through webhooks.
func (l *load) disturb() {
	l.round++
	l.change("a-"+fmt.Sprint(l.round%fleet), "kubectl-edit")
	l.change("b-0", "rival")
	l.deliver("shop-1", configMap("a-1", "good")+configMap("b-1", fmt.Sprint("round-", l.round))+deployment("shop-1", 0))
	l.deliver("changing", deployment("changing", l.round/20%2)) // alternates between healthy and unhealthy
	l.deliver("conflict", configMap("a-2", fmt.Sprint("round-", l.round)))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, GenerateName: "pod-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1"}}},
	}
	kit.Must(l, l.client.Create(l.Context(), pod, client.DryRunAll))
	l.post(seccompprofile.Path, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"version":"v1","kind":"Pod"},`+
		`"resource":{"version":"v1","resource":"pods"},"operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod","spec":"nonsense"}}}`)
	l.disturbWebhook()
	l.post(nodeagentauthorizer.Path, nodeAgentReview)
}

// nodeAgentReview is the API server's request about a node agent.
const nodeAgentReview = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:m",` +
	`"groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","version":"v1","resource":"nodes","name":"node-0"}}}`

// disturbWebhook calls a webhook that fails because the namespace of the workload cannot be read.
func (l *load) disturbWebhook() {
	l.Helper()
	l.post(highavailability.Path, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"2","kind":{"group":"apps","version":"v1","kind":"Deployment"},`+
		`"resource":{"group":"apps","version":"v1","resource":"deployments"},"operation":"CREATE","namespace":"gone","name":"d",`+
		`"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"gone"},"spec":{"selector":{},"template":{}}}}}`)
}

// change changes a ConfigMap as a field manager.
func (l *load) change(name, manager string) {
	l.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"key":"changed-%d"}}`, l.round))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
	kit.Must(l, client.IgnoreNotFound(l.client.Patch(l.Context(), object, patch, client.FieldOwner(manager))))
}

// post sends a review to the webhooks as an API server does.
func (l *load) post(path, body string) {
	l.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(l.process.Authority.Bundle())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).
		Post(fmt.Sprintf("https://127.0.0.1:%d%s", l.process.WebhookPort, path), "application/json", bytes.NewBufferString(body))
	kit.Must(l, err)
	_ = kit.ReadAll(l, response.Body)
}

// register registers the webhooks at the API server for the namespace.
func (l *load) register() {
	l.Helper()
	config := &configv1alpha1.WebhooksConfiguration{}
	config.SeccompProfile.Enabled, config.PodTopologySpreadConstraints.Enabled = true, true
	configuration := webhooks.MutatingConfiguration(webhooks.Enabled(webhooks.Table(), config), webhooks.Placement{},
		webhookserver.AtURL(fmt.Sprintf("https://127.0.0.1:%d", l.process.WebhookPort), l.process.Authority.Bundle()))
	configuration.Name = "monitoring"
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace}}
		configuration.Webhooks[i].FailurePolicy = new(admissionregistrationv1.FailurePolicyType)
		*configuration.Webhooks[i].FailurePolicy = admissionregistrationv1.Ignore
	}
	kit.Must(l, l.client.Create(l.Context(), configuration))
	l.Cleanup(func() { _ = l.client.Delete(context.Background(), configuration) })
}
