package tokenrequestor

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
	"github.com/trellis-k8s/trellis/test/kit"
)

var weekSecrets = flag.Int("tokens.secrets", 30, "number of Secrets of TestWeek")

// week is a simulated week. Times are by the API server's clock.
type week struct {
	*fixture
	tokens *issuer
	random *rand.Rand

	mu sync.Mutex
	// due is when a Secret has to be reconciled again, expires when its token expires, renewals when it got new tokens.
	due, expires map[string]time.Time
	renewals     map[string][]time.Time
}

// TestWeek simulates a week of the real reconciler on a real API server, with a token API whose clock can be set (-tokens.secrets sets
// the number of Secrets). Each day, another replica takes over. Its clock is an hour ahead, correct, or an hour behind. The token of
// each Secret has to be valid at every instant. Only renewals and the first reconciliations of a new replica may cause requests.
func TestWeek(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ctx = log.IntoContext(context.WithoutCancel(t.Context()), log.Log) // no log line for each renewal
	w := &week{
		fixture: f, tokens: f.simulateTokens(), random: rand.New(rand.NewPCG(1, 2)),
		due: map[string]time.Time{}, expires: map[string]time.Time{}, renewals: map[string][]time.Time{},
	}
	for i := range *weekSecrets {
		w.newSource(nameOf(i), nil, lifetimeFor(i)...)
	}
	begin := w.tokens.now()
	for day, skew := range []time.Duration{0, time.Hour, -time.Hour, 0, -time.Hour, time.Hour, 0} {
		w.takeOver(skew)
		w.runUntil(begin.Add(time.Duration(day+1) * 24 * time.Hour))
	}
	w.report(begin)
}

func nameOf(i int) string { return fmt.Sprintf("web-%d", i) }

// lifetimeFor makes most tokens last for the default of twelve hours, one for an hour, and two for thirty days.
func lifetimeFor(i int) []string {
	switch i {
	case 0:
		return []string{accountKeys + "token-expiration-duration", "1h"}
	case 1, 2:
		return []string{accountKeys + "token-expiration-duration", "720h"}
	}
	return nil
}

// takeOver starts a replica and makes it reconcile all Secrets. The API server's clock is ahead of the replica's by skew.
func (w *week) takeOver(skew time.Duration) {
	w.Helper()
	now := w.tokens.now()
	w.clock.SetTime(now.Add(-skew))
	w.server.set(func(s *server) { s.skew = skew })
	w.start(func(r *tokenrequestor.Reconciler) {
		r.Random = func() float64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.random.Float64()
		}
	})
	for i := range *weekSecrets {
		w.due[nameOf(i)] = now
	}
}

// runUntil advances the clock until end, each time to the next Secret that is due.
func (w *week) runUntil(end time.Time) {
	w.Helper()
	for {
		next := end
		for _, due := range w.due {
			if due.Before(next) {
				next = due
			}
		}
		w.clock.Step(max(next.Sub(w.tokens.now()), 0))
		for name, expires := range w.expires {
			if !expires.After(w.tokens.now()) {
				w.Fatalf("at %s the token of %s has expired", w.tokens.now(), name)
			}
		}
		if next.Equal(end) {
			return
		}
		w.reconcileDue(next)
	}
}

// reconcileDue reconciles the Secrets that are due within a few seconds.
func (w *week) reconcileDue(now time.Time) {
	w.Helper()
	waits := map[string]time.Duration{}
	for name, due := range w.due {
		if wait := due.Sub(now); wait <= 5*time.Second {
			waits[name] = max(wait, 0)
		}
	}
	var group errgroup.Group
	group.SetLimit(16)
	for name, wait := range waits {
		group.Go(func() error {
			result, err := w.try(name)
			if err != nil {
				return err
			}
			if wait > 0 && result.RequeueAfter <= wait {
				return nil // it was reconciled some seconds too early
			}
			w.learn(name, now, now.Add(result.RequeueAfter))
			return nil
		})
	}
	kit.Must(w, group.Wait())
}

// learn records the result of a reconciliation.
func (w *week) learn(name string, now, due time.Time) {
	secret := w.secret(w.source, name)
	expires := w.tokens.expiry(secret.Data["token"])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due[name] = due
	if !expires.Equal(w.expires[name]) {
		w.expires[name] = expires
		w.renewals[name] = append(w.renewals[name], now)
	}
}

// report checks and prints the results of the week.
func (w *week) report(begin time.Time) {
	w.Helper()
	total, least, most := 0, 1<<30, 0
	perSixHours, firstWave, perMinute := make([]int, 28), map[int]int{}, map[int]int{}
	for i := range *weekSecrets {
		renewals := w.renewals[nameOf(i)]
		for number, at := range renewals {
			since := at.Sub(begin)
			perSixHours[min(int(since/(6*time.Hour)), 27)]++
			if number > 0 {
				perMinute[int(since/time.Minute)]++
			}
			if number == 1 && lifetimeFor(i) == nil {
				firstWave[int(since/(2*time.Minute))*2]++
			}
		}
		total += len(renewals)
		if lifetimeFor(i) == nil {
			least, most = min(least, len(renewals)), max(most, len(renewals))
		}
	}
	if total != w.tokens.requests {
		w.Errorf("%d tokens were requested, but only %d are in Secrets", w.tokens.requests, total)
	}
	if least < 16 || most > 18 { // 168 hours, 9.6 to 10.08 hours each, and the first one
		w.Errorf("tokens of twelve hours were requested %d to %d times", least, most)
	}
	sent := map[string]int{}
	for one := range strings.SplitSeq(w.sent(), ", ") {
		sent[one]++
	}
	if sent["PATCH secrets"] != total || sent["PATCH serviceaccounts"] != *weekSecrets {
		w.Errorf("the requests are %v for %d tokens", sent, total)
	}
	w.Logf("%d Secrets: %d tokens in a week, all valid at every instant; at most %d renewals in one minute", *weekSecrets, total, slices.Max(slices.Collect(maps.Values(perMinute))))
	w.Logf("requests: %v", sent)
	w.Logf("tokens requested, per 6 hours:")
	for i, count := range perSixHours {
		w.Logf("%4d h %6d %s", 6*i, count, bar(count, slices.Max(perSixHours)))
	}
	w.Logf("first renewals of tokens of twelve hours, by minutes since they were requested:")
	for _, minute := range slices.Sorted(maps.Keys(firstWave)) {
		w.Logf("%4d min %4d %s", minute, firstWave[minute], bar(firstWave[minute], slices.Max(slices.Collect(maps.Values(firstWave)))))
	}
}

func bar(count, most int) string { return strings.Repeat("#", (count*50+most-1)/most) }
