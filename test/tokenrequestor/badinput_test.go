package tokenrequestor

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
)

// TestBadInput checks that input that a user has to correct is reported once in an Event, is not retried, and causes neither a token
// nor a ServiceAccount.
func TestBadInput(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	template := kubeconfigTemplate("https://localhost")
	user := func(fields string) map[string]string {
		return map[string]string{"kubeconfig": strings.Replace(template, `token: ""`, fields, 1)}
	}
	for name, test := range map[string]struct {
		data        map[string]string
		annotations []string
		reason      string
		says        string
	}{
		"no-account":         {nil, []string{accountKeys + "name", ""}, "InvalidAnnotations", accountKeys + "name is missing"},
		"bad-labels":         {nil, []string{accountKeys + "labels", "{a:b}"}, "InvalidAnnotations", "not a JSON object of strings"},
		"bad-label-values":   {nil, []string{accountKeys + "labels", `{"a":"b c"}`}, "InvalidAnnotations", "not a valid label value"},
		"no-duration":        {nil, []string{accountKeys + "token-expiration-duration", "soon"}, "InvalidAnnotations", "not a duration such as 6h"},
		"too-short":          {nil, []string{accountKeys + "token-expiration-duration", "9m59s"}, "InvalidAnnotations", "tokens only for 10m0s to"},
		"negative":           {nil, []string{accountKeys + "token-expiration-duration", "-1h"}, "InvalidAnnotations", "tokens only for 10m0s to"},
		"too-long":           {nil, []string{accountKeys + "token-expiration-duration", "2000000h"}, "InvalidAnnotations", "tokens only for 10m0s to"},
		"no-kubeconfig":      {map[string]string{"kubeconfig": "{hidden-text"}, nil, "InvalidKubeconfig", "neither YAML nor JSON"},
		"no-current-context": {map[string]string{"kubeconfig": strings.Replace(template, "current-", "x-", 1)}, nil, "InvalidKubeconfig", "does not set current-context"},
		"a-program":          {user("exec: {command: hidden-text, apiVersion: client.authentication.k8s.io/v1}"), nil, "InvalidKubeconfig", "remove exec"},
		"an-auth-provider":   {user("auth-provider: {name: hidden-text}"), nil, "InvalidKubeconfig", "auth-provider: remove it"},
		"a-huge-kubeconfig":  {map[string]string{"kubeconfig": template + strings.Repeat("#", 900<<10)}, nil, "InvalidKubeconfig", "more than the 524288 allowed"},
		"itself":             {nil, []string{targetKeys + "name", "itself", targetKeys + "namespace", f.source}, "InvalidTarget", "name the Secret itself"},
		"forbidden":          {nil, []string{accountKeys + "namespace", "kube-system"}, "NamespaceNotAllowed", `names "kube-system", but the configuration`},
		"forbidden-target":   {nil, []string{targetKeys + "name", "x", targetKeys + "namespace", "kube-system"}, "NamespaceNotAllowed", `target-secret-namespace names "kube-system"`},
	} {
		f.start(func(r *tokenrequestor.Reconciler) {
			r.Options.AccountNamespaces, r.Options.TargetNamespaces = []string{f.target}, []string{f.source, f.target}
		})
		f.newSource(name, test.data, test.annotations...)
		f.sent()
		for range 3 {
			_, err := f.try(name)
			if err == nil || !errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: the error is %v", name, err)
			} else if strings.Contains(err.Error(), "hidden-text") {
				t.Errorf("%s: the error reveals content of the Secret: %v", name, err)
			}
		}
		f.wantEvent("Warning "+test.reason, test.says)
		if event := f.event(); event != "" {
			t.Errorf("%s: the Event was recorded twice: %s", name, event)
		}
		if sent := f.sent(); strings.Contains(sent, "POST") || strings.Contains(sent, "PATCH") {
			t.Errorf("%s: the requests are %s", name, sent)
		}
		if f.metric("token_failures_total", test.reason) != 3 {
			t.Errorf("%s: the failures are not counted", name)
		}
	}
}

// TestCorrectedInput checks that a Secret gets its token once a user has corrected it.
func TestCorrectedInput(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	source := f.newSource("web", nil, accountKeys+"token-expiration-duration", "1m")
	if _, err := f.try("web"); err == nil {
		t.Fatal("the reconciliation has not failed")
	}
	f.change(source, func(s *corev1.Secret) { annotate(s, accountKeys+"token-expiration-duration", "1h") })
	secret, _ := f.reconcile("web")
	f.wantToken(string(secret.Data["token"]), "web")
	f.change(source, func(s *corev1.Secret) { annotate(s, accountKeys+"token-expiration-duration", "1m") })
	f.wantEvent("Warning InvalidAnnotations")
	if _, err := f.try("web"); err == nil {
		t.Fatal("the reconciliation has not failed")
	}
	f.wantEvent("Warning InvalidAnnotations") // recorded again, because the input was correct in between
}

// TestRestrictionsAllow checks that namespaces that the configuration names can be used.
func TestRestrictionsAllow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(func(r *tokenrequestor.Reconciler) {
		r.Options.AccountNamespaces, r.Options.TargetNamespaces = []string{"x", f.target}, []string{"y", f.target}
	})
	f.newSource("web", nil, f.sync("copy")...)
	f.reconcile("web")
	f.wantToken(string(f.secret(f.target, "copy").Data["token"]), "web")
}

// TestFailingRequests checks that a temporary failure causes no Event, and that the next attempt succeeds. No token is lost between two
// Secrets: after a failure that follows the request of a token, another token is requested.
func TestFailingRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	source := f.newSource("web", nil, f.sync("copy")...)
	for _, broken := range []string{"GET /serviceaccounts/web", "PATCH /serviceaccounts/web", "POST /token", "POST /secrets", "GET /secrets/copy"} {
		method, suffix, _ := strings.Cut(broken, " ")
		f.server.set(func(s *server) {
			s.answer = func(request *http.Request) (*http.Response, error) {
				if request.Method == method && strings.HasSuffix(request.URL.Path, suffix) {
					return nil, errors.New("connection broken by the test")
				}
				return nil, nil
			}
		})
		if _, err := f.try("web"); err == nil || errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), "broken by the test") {
			t.Errorf("%s: the error is %v", broken, err)
		}
		if f.secret(f.source, "web").Annotations[renewal] != "" {
			t.Errorf("%s: the Secret has a time of renewal without a token", broken)
		}
	}
	if event := f.event(); event != "" {
		t.Errorf("unexpected Event %s", event)
	}
	f.server.set(func(s *server) { s.answer = nil })
	secret, _ := f.reconcile("web")
	if secret.Annotations[renewal] == "" {
		t.Error("the Secret has no time of renewal")
	}
	f.wantToken(string(f.secret(f.target, "copy").Data["token"]), "web")

	// Another client changes the source Secret between the read and the write. Its change is kept, and the token is requested again.
	f.change(source, func(s *corev1.Secret) { annotate(s, renewal, "") })
	interfere := true
	f.server.set(func(s *server) {
		s.answer = func(request *http.Request) (*http.Response, error) {
			if interfere && strings.HasSuffix(request.URL.Path, "/token") {
				interfere = false
				f.change(source, func(s *corev1.Secret) { annotate(s, "theirs", "kept") })
			}
			return nil, nil
		}
	})
	_, result := f.reconcile("web")
	if result.RequeueAfter == 0 || f.secret(f.source, "web").Annotations[renewal] != "" {
		t.Errorf("the change was overwritten, or the reconciliation is not retried: %+v", result)
	}
	if secret, _ = f.reconcile("web"); secret.Annotations["theirs"] != "kept" || secret.Annotations[renewal] == "" {
		t.Errorf("the annotations are %v", secret.Annotations)
	}
}

// TestNoSecretBytes checks that neither the log nor Events nor errors contain a token, a kubeconfig or a CA bundle.
func TestNoSecretBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", map[string]string{"kubeconfig": kubeconfigTemplate("https://hidden-server")}, accountKeys+"inject-ca-bundle", "true")
	secret, _ := f.reconcile("web")
	f.start(func(r *tokenrequestor.Reconciler) { r.Target.CAData = []byte("hidden-bundle") })
	f.reconcile("web")
	f.newSource("bad", map[string]string{"kubeconfig": "hidden-server: [" + string(secret.Data["kubeconfig"])})
	_, err := f.try("bad")
	said := f.log.String() + fmt.Sprint(err) + f.event() + f.event()
	if !strings.Contains(said, "Requested a token") || !strings.Contains(said, "InvalidKubeconfig") {
		t.Errorf("the output is incomplete: %s", said)
	}
	for _, hidden := range []string{"hidden-", "eyJ", base64.StdEncoding.EncodeToString([]byte("hidden-bundle"))} {
		if strings.Contains(said, hidden) {
			t.Errorf("the output contains %s: %s", hidden, said)
		}
	}
}

// respond returns a response in JSON.
func respond(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1,
	}
}
