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
	// mostSessions bounds how many viewers are known at the same time. It is more than the number that follows changes. Who is forgotten is asked about
	// again, and notices nothing.
	mostSessions = 96
	// idle is after how long without a request a viewer is forgotten.
	idle = 5 * time.Minute
)

// tokens are what a viewer is known by: in the cluster with the ManagedResources, and in the one with the objects if that is another
// one, where it may be empty.
type tokens struct{ source, target string }

// key stands for tokens.
type key [sha256.Size]byte

// sessions keep what is known of viewers. They are nothing but a cache: every replica can do without.
type sessions struct {
	clock   clock.PassiveClock
	metrics Metrics
	// secret makes keys worthless elsewhere.
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

// find returns the session of tokens; nil if there is none.
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

// add returns the session that there is by now, which is the new one mostly. Others that were not used for long make room.
func (s *sessions) add(added *session) *session {
	k := s.keyOf(added.tokens)
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.known[k]; there != nil {
		return there
	}
	for len(s.known) >= mostSessions {
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

// Limits for log-ins, which are all requests with unknown tokens: the burst and the rate for each second, for one address and for all.
const (
	loginsAtOnce, loginsPerSecond       = 30, 3
	loginsOfAllAtOnce, loginsOfAllOften = 60, 10
	// mostAddresses bounds what is remembered.
	mostAddresses = 1000
)

// entrance bounds how many log in.
type entrance struct {
	all flowcontrol.RateLimiter

	mu        sync.Mutex
	addresses map[string]flowcontrol.RateLimiter
}

func newEntrance() *entrance {
	return &entrance{
		all: flowcontrol.NewTokenBucketRateLimiter(loginsOfAllOften, loginsOfAllAtOnce), addresses: map[string]flowcontrol.RateLimiter{},
	}
}

// admits reports whether a viewer from an address may log in now.
func (e *entrance) admits(address string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.addresses[address]
	if limit == nil {
		if len(e.addresses) >= mostAddresses {
			clear(e.addresses) // the bound for all remains
		}
		limit = flowcontrol.NewTokenBucketRateLimiter(loginsPerSecond, loginsAtOnce)
		e.addresses[address] = limit
	}
	return limit.TryAccept() && e.all.TryAccept()
}
