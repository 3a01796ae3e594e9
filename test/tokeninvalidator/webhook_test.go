package tokeninvalidator

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tokenwebhook "github.com/trellis-k8s/trellis/pkg/webhooks/tokeninvalidator"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// labelled returns a Secret that the webhook is called for.
func (f *fixture) labelled(name string, considered bool, data map[string][]byte) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: f.meta(name), Data: data}
	secret.Labels = map[string]string{purpose: "token-invalidator"}
	if considered {
		secret.Labels[consider] = "true"
	}
	return secret
}

// TestWebhook calls the webhook through the API server, with Secrets for which kube-controller-manager generates no tokens.
func TestWebhook(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]struct {
		considered bool
		data, want map[string][]byte
	}{
		"valid":           {true, map[string][]byte{"token": []byte("x"), "a": {0xff}}, map[string][]byte{"token": {0, 0, 0}, "a": {0xff}}},
		"empty":           {true, map[string][]byte{"token": nil}, map[string][]byte{"token": {0, 0, 0}}},
		"missing":         {true, map[string][]byte{"a": []byte("b")}, map[string][]byte{"token": {0, 0, 0}, "a": []byte("b")}},
		"invalid":         {true, map[string][]byte{"token": {0, 0, 0}}, map[string][]byte{"token": {0, 0, 0}}},
		"no-data":         {true, nil, nil},
		"wanted":          {false, map[string][]byte{"token": []byte("x"), "a": []byte("b")}, map[string][]byte{"token": []byte("x"), "a": []byte("b")}},
		"restored":        {false, map[string][]byte{"token": {0, 0, 0}, "a": []byte("b")}, map[string][]byte{"a": []byte("b")}},
		"almost":          {false, map[string][]byte{"token": {0, 0}}, map[string][]byte{"token": {0, 0}}},
		"wanted-no-token": {false, map[string][]byte{"a": []byte("b")}, map[string][]byte{"a": []byte("b")}},
		"wanted-no-data":  {false, nil, nil},
	} {
		// On creation, and on an update that adds the labels and the data.
		created := f.labelled(name, test.considered, test.data)
		kit.Must(t, f.client.Create(f.ctx, created))
		updated := &corev1.Secret{ObjectMeta: f.meta(name + "-updated")}
		kit.Must(t, f.client.Create(f.ctx, updated))
		updated.Labels, updated.Data = created.Labels, test.data
		kit.Must(t, f.client.Update(f.ctx, updated))
		for _, secret := range []*corev1.Secret{f.secret(name), f.secret(updated.Name)} {
			if !maps.EqualFunc(secret.Data, test.want, slices.Equal) {
				t.Errorf("%s has the data %v, want %v", secret.Name, secret.Data, test.want)
			}
			if !maps.Equal(secret.Labels, created.Labels) {
				t.Errorf("%s has the labels %v", secret.Name, secret.Labels)
			}
		}
	}
	// The API server has already converted stringData to data.
	secret := f.labelled("strings", true, nil)
	secret.StringData = map[string]string{"token": "x", "a": "b"}
	kit.Must(t, f.client.Create(f.ctx, secret))
	if got := f.secret("strings").Data; string(got["token"]) != invalid || string(got["a"]) != "b" {
		t.Errorf("the data is %v", got)
	}
}

// TestWebhookWithoutLabel checks that the API server does not call the webhook without the label for the purpose.
func TestWebhookWithoutLabel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := f.labelled("a", true, map[string][]byte{"token": []byte("x")})
	secret.Labels[purpose] = "something-else"
	kit.Must(t, f.client.Create(f.ctx, secret))
	if got := string(f.secret("a").Data["token"]); got != "x" {
		t.Errorf("the token is %q", got)
	}
}

// TestDryRun checks that a dry run shows the result and persists nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := f.labelled("a", true, map[string][]byte{"token": []byte("x")})
	kit.Must(t, f.client.Create(f.ctx, secret, client.DryRunAll))
	if string(secret.Data["token"]) != invalid {
		t.Error("a dry run does not show the invalid token")
	}
	if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run, the Secret exists: %v", err)
	}
	secret = f.labelled("a", false, map[string][]byte{"token": []byte("x")})
	kit.Must(t, f.client.Create(f.ctx, secret))
	f.patch(secret, `{"metadata":{"labels":{"`+consider+`":"true"}}}`, client.DryRunAll)
	if string(secret.Data["token"]) != invalid {
		t.Error("a dry run does not show the invalid token")
	}
	if got := string(f.secret("a").Data["token"]); got != "x" {
		t.Errorf("after a dry run, the token is %q", got)
	}
}

// TestWebhookThatDoesNotAnswer checks that the API server then refuses the labels, and that the controller retries until the webhook
// answers.
func TestWebhookThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	token := f.generated("a-1")
	port, err := controlplane.FreePort()
	kit.Must(t, err)
	nowhere := "https://127.0.0.1:" + strconv.Itoa(port) + tokenwebhook.Path
	dead := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "dead-" + f.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{registration(admissionregistrationv1.WebhookClientConfig{URL: &nowhere},
			&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}})},
	}
	kit.Must(t, f.client.Create(f.ctx, dead))
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), dead) })
	kit.EventuallyTrue(t, "the API server calls a webhook that does not answer", func() bool {
		return f.client.Create(f.ctx, f.labelled("probe", true, nil), client.DryRunAll) != nil
	})
	p := f.start()
	kit.EventuallyTrue(t, "the controller has tried twice", func() bool { return strings.Count(p.Written.String(), "change the labels of Secret") > 1 })
	if secret := f.secret("a-1"); string(secret.Data["token"]) != token || len(secret.Labels) != 0 {
		t.Error("the Secret was changed although the webhook does not answer")
	}
	kit.Must(t, f.client.Delete(f.ctx, dead))
	f.eventuallyInvalid("a-1")
	f.eventuallyRefused(token)
}

// TestWebhookInstalledLater checks that labels have no effect without the webhook, and that the documented procedure makes them effective.
func TestWebhookInstalledLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	f.patch(namespace, `{"metadata":{"labels":{"`+withoutWebhook+`":""}}}`)
	kit.EventuallyTrue(t, "the webhook is not called", func() bool {
		secret := f.labelled("probe", true, map[string][]byte{"token": []byte("x")})
		kit.Must(t, f.client.Create(f.ctx, secret, client.DryRunAll))
		return string(secret.Data["token"]) == "x"
	})
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	token := f.generated("a-1")
	f.start()
	kit.EventuallyTrue(t, "the Secret is labelled", func() bool { return f.secret("a-1").Labels[consider] == "true" })
	f.eventuallyAccepted(token)
	f.patch(namespace, `{"metadata":{"labels":{"`+withoutWebhook+`":null}}}`)
	kit.EventuallyTrue(t, "the Secret is labelled again while the webhook is called", func() bool {
		f.patch(f.secret("a-1"), `{"metadata":{"labels":{"`+consider+`":null}}}`)
		return string(f.secret("a-1").Data["token"]) != token || f.secret("a-1").Labels[consider] != ""
	})
	f.eventuallyInvalid("a-1")
	f.eventuallyRefused(token)
}

// TestOtherPurpose checks that a Secret whose label names another purpose is unchanged, which is reported once.
func TestOtherPurpose(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("a", ptr.To(false), nil)
	secret := f.tokenSecret("a-1", "a")
	secret.Labels = map[string]string{purpose: "something-else"}
	kit.Must(t, f.client.Create(f.ctx, secret))
	token := f.generated("a-1")
	p := f.start()
	f.eventuallyTold(secret, "Warning", "SecretHasOtherPurpose", purpose)
	if got := f.secret("a-1"); len(got.Labels) != 1 || got.Labels[purpose] != "something-else" || string(got.Data["token"]) != token {
		t.Errorf("the Secret was changed, its labels are %v", got.Labels)
	}
	wantMetric(p, `static_tokens_blocked{reason="SecretHasOtherPurpose"} 1`)
	f.patch(secret, `{"metadata":{"labels":{"`+purpose+`":null}}}`)
	f.eventuallyInvalid("a-1")
	wantMetric(p, `static_tokens_blocked{reason="SecretHasOtherPurpose"} 0`)
}

// TestImmutableSecret checks that a change that the API server refuses is reported once, and not retried until something else changes.
func TestImmutableSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account("a", ptr.To(false), nil)
	secret := f.token("a-1", "a")
	token := f.generated("a-1")
	f.patch(secret, `{"immutable":true}`)
	p := f.start()
	f.eventuallyTold(secret, "Warning", "SecretChangeRefused", "immutable")
	f.eventuallyAccepted(token)
	wantMetric(p, `static_tokens_blocked{reason="SecretChangeRefused"} 1`)
	kit.EventuallyTrue(t, "the controller does not retry", func() bool {
		_, body := p.Get(p.Metrics, "/metrics")
		return strings.Contains(body, `controller_runtime_terminal_reconcile_errors_total{controller="token-invalidator"} 1`) &&
			strings.Contains(body, `workqueue_retries_total{controller="token-invalidator",name="token-invalidator"} 0`)
	})
	if log := p.Written.String(); strings.Contains(log, token) || strings.Contains(log, base64.StdEncoding.EncodeToString([]byte(token))) {
		t.Error("the log contains the token")
	}
	f.change(account, func() { account.Labels = map[string]string{skip: "true"} })
	wantMetric(p, `static_tokens_blocked{reason="SecretChangeRefused"} 0`)
	f.change(account, func() { account.Labels = nil })
	wantMetric(p, `static_tokens_blocked{reason="SecretChangeRefused"} 1`)
	kit.Must(t, f.client.Delete(f.ctx, secret))
	f.token("a-1", "a")
	f.eventuallyInvalid("a-1")
	wantMetric(p, `static_tokens_blocked{reason="SecretChangeRefused"} 0`)
	f.eventuallyRefused(token)
}
