package tokenrequestor

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestAudienceThatIsNotAccepted uses an API server that does not accept the audience of the tokens, as is the default, and that issues
// tokens for at most an hour. The review contains the audience, so the token counts as valid. The returned expiry determines the
// renewal.
func TestAudienceThatIsNotAccepted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	controlPlane, err := controlplane.Start(context.Background(), controlplane.Options{APIServerArgs: map[string][]string{
		"service-account-max-token-expiration": {"1h"},
	}})
	kit.Must(t, err)
	defer func() { kit.Must(t, controlPlane.Stop()) }()
	f := newFixtureOn(t, controlPlane.Config())
	f.newSource("web", nil)
	first, result := f.reconcile("web")
	f.wantToken(string(first.Data["token"]), "web")
	f.wantRenewal(first, time.Hour*8/10+time.Hour*8/10*25/1000)
	if result.RequeueAfter > time.Hour*84/100 {
		t.Errorf("the Secret is reconciled again after %s, when the token has expired", result.RequeueAfter)
	}
	for range 3 {
		f.start(nil)
		f.sent()
		if second, _ := f.reconcile("web"); string(second.Data["token"]) != string(first.Data["token"]) {
			t.Fatal("a valid token was renewed")
		}
		if sent := f.sent(); !strings.HasSuffix(sent, "POST tokenreviews") {
			t.Errorf("the requests are %s", sent)
		}
	}
}

// reviews makes the API server give an answer to reviews of tokens.
func (f *fixture) reviews(status int, body string) {
	f.server.set(func(s *server) {
		s.answer = func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
				return respond(status, body), nil
			}
			return nil, nil
		}
	})
}

const rejection = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false,"error":"no"}}`

// TestAPIServerThatRejectsAllTokens checks that a new token is requested once, that its rejection is reported, and that the next one
// is requested ten minutes later.
func TestAPIServerThatRejectsAllTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	source := f.newSource("web", nil)
	f.reconcile("web")
	f.start(nil)
	f.reviews(http.StatusCreated, rejection)
	f.reconcile("web")
	if f.metric("token_renewals_total", "Rejected") != 1 {
		t.Error("the rejected token was not replaced")
	}
	f.sent()
	for range 5 {
		f.reconcile("web")
	}
	if sent := f.sent(); strings.Contains(sent, "POST") {
		t.Errorf("at rest, the requests are %s", sent)
	}
	for range 5 { // another client changes the Secret repeatedly
		f.change(source, func(s *corev1.Secret) { annotate(s, "touched", time.Now().String()) })
		_, result := f.reconcile("web")
		if wait := result.RequeueAfter; wait > 10*time.Minute || wait < 9*time.Minute {
			t.Errorf("the Secret is reconciled again after %s, want 10 minutes", wait)
		}
	}
	f.wantEvent("Warning TokenRejected", "rejects the token that it issued")
	if event := f.event(); event != "" {
		t.Errorf("the Event was recorded twice: %s", event)
	}
	if f.metric("token_renewals_total", "Rejected") != 1 || f.metric("token_failures_total", "TokenRejected") != 5 {
		t.Error("the rejections are not counted")
	}
	f.clock.Step(10 * time.Minute)
	f.reconcile("web")
	if f.metric("token_renewals_total", "Rejected") != 2 {
		t.Error("no new token was requested after ten minutes")
	}
}

// TestReviewThatFails checks that a failed review is an error and no reason for a renewal. If reviews are forbidden, the token is kept
// without one. A token that is due is renewed without a review.
func TestReviewThatFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", nil)
	first, _ := f.reconcile("web")
	f.server.set(func(s *server) {
		s.answer = func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
				return nil, errors.New("connection broken by the test")
			}
			return nil, nil
		}
	})
	f.start(nil)
	if _, err := f.try("web"); err == nil || !strings.Contains(err.Error(), "review the token of ServiceAccount "+f.target+"/web") {
		t.Errorf("the error is %v", err)
	}
	f.reviews(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	f.reconcile("web")
	if second := f.secret(f.source, "web"); string(second.Data["token"]) != string(first.Data["token"]) {
		t.Error("the token was renewed")
	}
	f.start(nil)
	f.clock.Step(11 * time.Hour)
	f.sent()
	second, _ := f.reconcile("web")
	if sent := f.sent(); strings.Contains(sent, "tokenreviews") || string(second.Data["token"]) == string(first.Data["token"]) {
		t.Errorf("the token is due, but the requests are %s", sent)
	}
}

// TestDeletedServiceAccount checks that a restart detects a deleted or recreated ServiceAccount and requests a valid token.
func TestDeletedServiceAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", nil)
	f.reconcile("web")
	kit.Must(t, f.client.Delete(f.ctx, f.account("web")))
	f.start(nil)
	secret, _ := f.reconcile("web")
	f.wantToken(string(secret.Data["token"]), "web")
}

// TestRest checks that a Secret that needs nothing causes no requests, whether it is reconciled periodically or after an event of its
// own change.
func TestRest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", nil)
	_, result := f.reconcile("web")
	due := f.clock.Now().Add(result.RequeueAfter)
	f.sent()
	for f.clock.Step(time.Hour); f.clock.Now().Before(due); f.clock.Step(time.Hour) {
		result, err := f.try("web")
		kit.Must(t, err)
		if want := due.Sub(f.clock.Now()); result.RequeueAfter != want {
			t.Fatalf("the Secret is reconciled again after %s, want %s", result.RequeueAfter, want)
		}
		if sent := f.sent(); sent != "GET secrets" { // instead of a read from the cache
			t.Fatalf("the requests are %s", sent)
		}
	}
	f.reconcile("web")
	if sent := f.sent(); sent != "GET secrets, GET secrets, GET serviceaccounts, POST serviceaccounts/token, PATCH secrets" {
		t.Errorf("for the renewal, the requests are %s", sent)
	}
}

// TestClockSkew uses an API server whose clock is an hour ahead or behind. Then a replica with another clock takes over. Renewals
// happen on time by the API server's clock, which is the relevant one.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.simulateTokens()
			f.server.set(func(s *server) { s.skew = skew })
			f.newSource("web", nil, accountKeys+"token-expiration-duration", "1h")
			secret, result := f.reconcile("web")
			const in = time.Hour*8/10 + time.Hour*8/10*25/1000
			if (result.RequeueAfter - in).Abs() > 2*time.Second {
				t.Errorf("the Secret is reconciled again after %s, want %s", result.RequeueAfter, in)
			}
			f.wantRenewal(secret, skew+in) // by the API server's clock

			// Ten minutes later, another replica with a correct clock takes over.
			f.clock.Step(skew + 10*time.Minute)
			f.server.set(func(s *server) { s.skew = 0 })
			f.start(nil)
			again, result := f.reconcile("web")
			if string(again.Data["token"]) != string(secret.Data["token"]) {
				t.Error("a token that is not due was renewed")
			}
			if (result.RequeueAfter - in + 10*time.Minute).Abs() > 2*time.Second {
				t.Errorf("the next replica reconciles the Secret again after %s", result.RequeueAfter)
			}
		})
	}
}
