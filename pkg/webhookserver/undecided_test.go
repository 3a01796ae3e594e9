package webhookserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// TestUndecidedRequestsAreLogged checks that the log names the reason for each request that a webhook could not decide, and is
// silent about decisions.
func TestUndecidedRequestsAreLogged(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		logged string
	}{
		"allowed":     {},
		"denied":      {err: admit.Refuse(http.StatusForbidden, "the label may not change")},
		"unavailable": {admit.Unavailable("the Node was not found yet"), `"decision"="unavailable" "reason"="the Node was not found yet"`},
		"error":       {errors.New("list Nodes: forbidden"), `"decision"="error" "reason"="Pod \"web\" in namespace \"shop\" could not be checked: list Nodes: forbidden"`},
	} {
		var text strings.Builder
		logger := funcr.New(func(_, line string) { text.WriteString(line + "\n") }, funcr.Options{})
		webhook := &admission.Webhook{
			Handler:        admit.Validating(func(context.Context, *admission.Request) error { return test.err }),
			LogConstructor: func(logr.Logger, *admission.Request) logr.Logger { return logger },
		}
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "shop", Name: "web"}}
		request.Kind.Kind = "Pod"
		NewMetrics(prometheus.NewRegistry()).observe(Webhook{Name: "test"}, webhook)
		webhook.Handle(t.Context(), request)
		if got := text.String(); !strings.Contains(got, test.logged) || (test.logged == "") != (got == "") {
			t.Errorf("%s: the log is %q", name, got)
		}
	}
}
