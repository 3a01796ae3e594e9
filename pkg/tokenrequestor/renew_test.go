package tokenrequestor

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newToken returns a token with the given issue time and lifetime.
func newToken(issued time.Time, lifetime time.Duration) string {
	payload := fmt.Sprintf(`{"aud":["gardener"],"iat":%d,"nbf":%[1]d,"exp":%d}`, issued.Unix(), issued.Add(lifetime).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

// tokenOf returns a token with the times of another one that a ServiceAccount with the given UID owns.
func tokenOf(account, times string) string {
	own, _ := readClaims(times)
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, own.issued.Unix(), own.expires.Unix(), account)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestReasonToRenew(t *testing.T) {
	in := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	fresh := newToken(now.Add(-time.Hour), 12*time.Hour)
	for name, test := range map[string]struct {
		condition condition
		reason    string
		next      time.Duration
	}{
		"nothing":                       {condition{token: fresh, timestamp: in(8 * time.Hour)}, reasonNone, 8 * time.Hour},
		"no timestamp":                  {condition{token: fresh}, reasonNoTimestamp, 0},
		"an unreadable timestamp":       {condition{token: fresh, timestamp: "tomorrow"}, reasonNoTimestamp, 0},
		"no target":                     {condition{timestamp: in(time.Hour), targetMissing: true}, reasonTargetMissing, 0},
		"no token":                      {condition{timestamp: in(time.Hour)}, reasonNoToken, 0},
		"another CA":                    {condition{token: fresh, timestamp: in(time.Hour), bundleDiffers: true}, reasonBundleChanged, 0},
		"a new ServiceAccount":          {condition{token: fresh, timestamp: in(time.Hour), accountCreated: true}, reasonAccountCreated, 0},
		"another ServiceAccount":        {condition{token: tokenOf("old", fresh), timestamp: in(time.Hour), account: "new"}, reasonAccountReplaced, 0},
		"the same ServiceAccount":       {condition{token: tokenOf("old", fresh), timestamp: in(time.Hour), account: "old"}, reasonNone, time.Hour},
		"an unknown ServiceAccount":     {condition{token: tokenOf("old", fresh), timestamp: in(time.Hour)}, reasonNone, time.Hour},
		"a token of no ServiceAccount":  {condition{token: fresh, timestamp: in(time.Hour), account: "new"}, reasonNone, time.Hour},
		"the time of renewal":           {condition{token: fresh, timestamp: in(0)}, reasonDue, 0},
		"long after it":                 {condition{token: fresh, timestamp: in(-time.Hour)}, reasonDue, 0},
		"a timestamp after the expiry":  {condition{token: fresh, timestamp: in(1000 * time.Hour)}, reasonNone, 9*time.Hour + 48*time.Minute},
		"a timestamp that is too late":  {condition{token: newToken(now.Add(-11*time.Hour), 12*time.Hour), timestamp: in(time.Minute)}, reasonDue, 0},
		"a token that has expired":      {condition{token: newToken(now.Add(-time.Hour), time.Minute), timestamp: in(time.Hour)}, reasonDue, 0},
		"a token that tells no times":   {condition{token: "static", timestamp: in(time.Hour)}, reasonNone, time.Hour},
		"a token of which the end lies": {condition{token: newToken(now, -time.Hour), timestamp: in(time.Hour)}, reasonNone, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			reason, next := reasonToRenew(test.condition, now)
			if reason != test.reason || reason == reasonNone && next.Sub(now) != test.next {
				t.Errorf("got %q and in %s, want %q and in %s", reason, next.Sub(now), test.reason, test.next)
			}
		})
	}
}

func TestRenewalAfter(t *testing.T) {
	for _, test := range []struct {
		lifetime, from, to time.Duration
	}{
		{10 * time.Minute, 8 * time.Minute, 504 * time.Second},
		{12 * time.Hour, 576 * time.Minute, 36288 * time.Second},
		{24 * time.Hour, 1152 * time.Minute, 72576 * time.Second},
		{90 * 24 * time.Hour, 1152 * time.Minute, 72576 * time.Second},
	} {
		// The value lies in [80 %, 84 %) of the lifetime, or of 24 hours if that is shorter.
		if got := renewalAfter(test.lifetime, 0); got != test.from {
			t.Errorf("%s: at least after %s, want %s", test.lifetime, got, test.from)
		}
		if got := renewalAfter(test.lifetime, 1); got != test.to {
			t.Errorf("%s: at most after %s, want %s", test.lifetime, got, test.to)
		}
	}
}

func TestUntilReplaced(t *testing.T) {
	for _, test := range []struct {
		requested time.Time
		want      time.Duration
	}{{time.Time{}, 0}, {now, 10 * time.Minute}, {now.Add(-9 * time.Minute), time.Minute}, {now.Add(-10 * time.Minute), 0}, {now.Add(-time.Hour), 0}} {
		if got := untilReplaced(test.requested, now); got != test.want {
			t.Errorf("requested at %s: %s, want %s", test.requested, got, test.want)
		}
	}
}

func TestReadClaims(t *testing.T) {
	got, ok := readClaims(newToken(now, time.Hour))
	if !ok || !got.issued.Equal(now) || got.lifetime() != time.Hour {
		t.Errorf("got %v, %t", got, ok)
	}
	encode := func(text string) string { return "a." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".b" }
	for _, token := range []string{
		"", "a", "a.b", "a.b.c", "..", encode("{}"), encode(`{"iat":1}`), encode(`{"iat":2,"exp":1}`), encode(`{"iat":-1,"exp":1}`),
		encode(`{"iat":"1","exp":2}`), encode(`{"iat":1,"exp":99999999999999}`), encode(`{"iat":1,"exp":2}` + string(make([]byte, maxToken))),
	} {
		if _, ok := readClaims(token); ok {
			t.Errorf("%.40q has claims", token)
		}
	}
}

// FuzzReasonToRenew checks that a token that is not due has a renewal time in the future, for all tokens and
// timestamps.
func FuzzReasonToRenew(f *testing.F) {
	f.Add("2026-01-02T04:00:00Z", newToken(now, time.Hour))
	f.Add("9999-12-31T23:59:59+14:00", "a.eyJpYXQiOjEsImV4cCI6MjUzNDAyMzAwNzk5fQ.b")
	f.Fuzz(func(t *testing.T, timestamp, token string) {
		reason, next := reasonToRenew(condition{timestamp: timestamp, token: token}, now)
		if reason == reasonNone && !next.After(now) {
			t.Errorf("the next check is at %s, which is in the past", next)
		}
		if own, ok := readClaims(token); ok && reason == reasonNone && !next.Before(own.expires) {
			t.Errorf("the next check is at %s, after the token expires", next)
		}
	})
}
