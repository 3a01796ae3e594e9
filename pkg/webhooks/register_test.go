package webhooks

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// informers are fake informers that are either all synced or all not synced. A real cache cannot be kept in the latter state.
type informers struct {
	cache.Informers

	filled bool
	err    error
}

func (i *informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{filled: &i.filled}, i.err
}

type informer struct {
	toolscache.SharedIndexInformer

	filled *bool
}

func (i informer) HasSynced() bool { return *i.filled }

func row(policy admissionregistrationv1.FailurePolicyType, handler admission.Handler) Webhook {
	return Webhook{
		Name: "test", Path: "/test", Kind: webhookserver.Mutating, Reads: []client.Object{&corev1.Node{}}, Calls: &Calls{FailurePolicy: policy},
		New: func(Facts) (http.Handler, error) { return &admission.Webhook{Handler: handler}, nil },
	}
}

var allows = admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":{}}}`

func ask(t *testing.T, server webhook.Server) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/test", bytes.NewBufferString(review))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	server.WebhookMux().ServeHTTP(response, request)
	return response
}

// TestNothingIsDecidedBeforeCachesAreFilled checks that, if the failure policy is Fail, a request is refused with an error that
// makes clients retry. With the policy Ignore, the webhook returns an HTTP error.
func TestNothingIsDecidedBeforeCachesAreFilled(t *testing.T) {
	for policy, test := range map[admissionregistrationv1.FailurePolicyType]struct {
		status int
		body   string
	}{
		admissionregistrationv1.Fail:   {http.StatusOK, `"allowed":false,"status":{"metadata":{},"status":"Failure","message":"the caches of the webhook test are not filled yet","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}`},
		admissionregistrationv1.Ignore: {http.StatusServiceUnavailable, "the caches of the webhook test are not filled yet"},
	} {
		server, caches := webhook.NewServer(webhook.Options{}), &informers{}
		ready, err := Register(server, []Webhook{row(policy, allows)}, Facts{Context: t.Context(), Informers: caches}, webhookserver.NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			t.Fatal(err)
		}
		if err := ready(); err == nil || err.Error() != "the caches of the webhook test are not filled yet" {
			t.Errorf("ready returned %v", err)
		}
		if got := ask(t, server); got.Code != test.status || !strings.Contains(got.Body.String(), test.body) {
			t.Errorf("%s: %d %s", policy, got.Code, got.Body)
		}
		caches.filled = true
		if got := ask(t, server); ready() != nil || got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"allowed":true`) {
			t.Errorf("%s: %v, %d %s", policy, ready(), got.Code, got.Body)
		}
	}
}

func TestRegister_Errors(t *testing.T) {
	caches := &informers{err: errors.New("no such kind")}
	_, err := Register(webhook.NewServer(webhook.Options{}), []Webhook{row(admissionregistrationv1.Fail, allows)}, Facts{Context: t.Context(), Informers: caches}, webhookserver.NewMetrics(prometheus.NewRegistry()))
	if err == nil || err.Error() != "webhook test: cache of *v1.Node: no such kind" {
		t.Error(err)
	}
}

// TestPanic checks that a panic fails only its own request.
func TestPanic(t *testing.T) {
	server := webhook.NewServer(webhook.Options{})
	panics := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic("a bug") })
	if _, err := Register(server, []Webhook{row(admissionregistrationv1.Fail, panics)}, Facts{Context: t.Context(), Informers: &informers{filled: true}}, webhookserver.NewMetrics(prometheus.NewRegistry())); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := ask(t, server); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"allowed":false`) {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
}
