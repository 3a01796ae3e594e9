package gate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

const (
	// maxSessions limits the number of cached sessions. It is larger than the number of streams. If a session is
	// removed, the access of
	// its viewer is reviewed again with the next request, which the viewer does not notice.
	maxSessions = 96
	// idle is the time without a request after which a session is removed.
	idle = 5 * time.Minute
)

// tokens identify a viewer. source is the token for the cluster with the ManagedResources. target is the token for
// the cluster with
// the objects if that is another one. It may be empty.
type tokens struct{ source, target string }

// key is a keyed digest of tokens.
type key [sha256.Size]byte

// sessions is a cache of viewers. It can be lost at any time, and each replica has its own.
type sessions struct {
	clock   clock.PassiveClock
	metrics Metrics
	// secret is the key of the digests, so that they are useless elsewhere.
	secret []byte

	mu    sync.Mutex
	known map[key]*session
}

func newSessions(clock clock.PassiveClock, metrics Metrics) *sessions {
	return &sessions{clock: clock, metrics: metrics, secret: []byte(rand.Text()), known: map[key]*session{}}
}

func (s *sessions) keyOf(of tokens) (k key) {
	digest := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(digest, "%d %s%s", len(of.source), of.source, of.target)
	digest.Sum(k[:0])
	return k
}

// find returns the session of tokens. It returns nil if there is none.
func (s *sessions) find(of tokens) *session {
	k := s.keyOf(of)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.known[k]
	if found != nil {
		found.used = s.clock.Now()
	}
	return found
}

// add adds a session, and returns it, or the session that was added concurrently for the same tokens. If there are
// too many sessions,
// it removes those that were not used for the longest time.
func (s *sessions) add(added *session) *session {
	k := s.keyOf(added.tokens)
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.known[k]; there != nil {
		return there
	}
	for len(s.known) >= maxSessions {
		var oldest key
		for each, session := range s.known {
			if s.known[oldest] == nil || session.used.Before(s.known[oldest].used) {
				oldest = each
			}
		}
		delete(s.known, oldest)
	}
	added.used = s.clock.Now()
	s.known[k] = added
	s.metrics.viewers.Set(float64(len(s.known)))
	return added
}

func (s *sessions) remove(removed *session) {
	k := s.keyOf(removed.tokens)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[k] == removed {
		delete(s.known, k)
	}
	s.metrics.viewers.Set(float64(len(s.known)))
}

func (s *sessions) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for each, session := range s.known {
		if s.clock.Since(session.used) >= idle {
			delete(s.known, each)
		}
	}
	s.metrics.viewers.Set(float64(len(s.known)))
}

// Limits for logins, which are all requests with unknown tokens: burst and rate per second, for one address and for
// all addresses.
const (
	loginsAtOnce, loginsPerSecond       = 30, 3
	loginsOfAllAtOnce, loginsOfAllOften = 60, 10
	// maxAddresses limits the number of addresses in memory.
	maxAddresses = 1000
)

// loginLimiter limits the rate of logins.
type loginLimiter struct {
	all flowcontrol.RateLimiter

	mu        sync.Mutex
	addresses map[string]flowcontrol.RateLimiter
}

func newLoginLimiter() *loginLimiter {
	return &loginLimiter{
		all: flowcontrol.NewTokenBucketRateLimiter(loginsOfAllOften, loginsOfAllAtOnce), addresses: map[string]flowcontrol.RateLimiter{},
	}
}

// admits reports whether a viewer from an address may log in now.
func (e *loginLimiter) admits(address string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.addresses[address]
	if limit == nil {
		if len(e.addresses) >= maxAddresses {
			clear(e.addresses) // the limit for all addresses remains
		}
		limit = flowcontrol.NewTokenBucketRateLimiter(loginsPerSecond, loginsAtOnce)
		e.addresses[address] = limit
	}
	return limit.TryAccept() && e.all.TryAccept()
}
