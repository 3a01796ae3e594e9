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

// TestAudienceThatIsNotAccepted: an API server that lets nobody in with the audience of the tokens, as is the default, and that issues
// tokens for an hour at most. The review carries the audience, so that the token counts as valid, and the returned expiry decides.
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
		t.Errorf("comes back after %s, when the token has expired", result.RequeueAfter)
	}
	for range 3 {
		f.start(nil)
		f.sent()
		if second, _ := f.reconcile("web"); string(second.Data["token"]) != string(first.Data["token"]) {
			t.Fatal("a token that is fine is renewed")
		}
		if sent := f.sent(); !strings.HasSuffix(sent, "POST tokenreviews") {
			t.Errorf("sent was %s", sent)
		}
	}
}

// reviews has the API server answer reviews of tokens.
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

// TestAPIServerThatRejectsAllTokens: a new token is requested once; that it is rejected too is told, and there is no busy loop.
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
		t.Errorf("at rest, sent was %s", sent)
	}
	before := f.secret(f.source, "web").Annotations[renewal]
	for range 5 { // somebody changes the Secret, again and again
		f.change(source, func(s *corev1.Secret) { annotate(s, "touched", time.Now().String()) })
		_, result := f.reconcile("web")
		due, err := time.Parse(time.RFC3339, before)
		kit.Must(t, err)
		if wait := due.Sub(f.clock.Now()); (result.RequeueAfter - wait).Abs() > 2*time.Second {
			t.Errorf("comes back after %s, want %s, when the token is due", result.RequeueAfter, wait)
		}
	}
	f.wantEvent("Warning TokenRejected", "rejects the token that it issued")
	if event := f.event(); event != "" {
		t.Errorf("told twice: %s", event)
	}
	if f.metric("token_renewals_total", "Rejected") != 1 || f.metric("token_failures_total", "TokenRejected") != 5 {
		t.Error("it is not counted")
	}
	f.clock.Step(10 * time.Minute)
	f.change(source, func(s *corev1.Secret) { annotate(s, "touched", "") })
	f.reconcile("web")
	if f.metric("token_renewals_total", "Rejected") != 2 {
		t.Error("after ten minutes it is not tried again")
	}
}

// TestReviewThatFails: a review that fails is an error and no reason to renew; one that is forbidden is done without. What is due is
// renewed without a review.
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
		t.Errorf("the token is due, but sent was %s", sent)
	}
}

// TestDeletedServiceAccount: a restart finds that the ServiceAccount is gone, or another one, and brings back a token that is valid.
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

// TestRest: a Secret that needs nothing costs no request, whether it is looked at, or its own change comes back as an event.
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
			t.Fatalf("comes back after %s, want %s", result.RequeueAfter, want)
		}
		if sent := f.sent(); sent != "GET secrets" { // in the place of the cache
			t.Fatalf("sent was %s", sent)
		}
	}
	f.reconcile("web")
	if sent := f.sent(); sent != "GET secrets, GET secrets, GET serviceaccounts, POST serviceaccounts/token, PATCH secrets" {
		t.Errorf("for the renewal, sent was %s", sent)
	}
}

// TestClockSkew: the API server's clock is an hour ahead or behind, and a replica with another clock takes over. Renewals come when they
// should by the clock that decides, the API server's.
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
				t.Errorf("comes back after %s, want %s", result.RequeueAfter, in)
			}
			f.wantRenewal(secret, skew+in) // in the API server's time

			// Ten minutes later another replica takes over, whose clock is right.
			f.clock.Step(skew + 10*time.Minute)
			f.server.set(func(s *server) { s.skew = 0 })
			f.start(nil)
			again, result := f.reconcile("web")
			if string(again.Data["token"]) != string(secret.Data["token"]) {
				t.Error("a token that is not due is renewed")
			}
			if (result.RequeueAfter - in + 10*time.Minute).Abs() > 2*time.Second {
				t.Errorf("the next replica comes back after %s", result.RequeueAfter)
			}
		})
	}
}
