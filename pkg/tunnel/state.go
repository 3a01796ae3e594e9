package tunnel

import (
	"errors"
	"fmt"
	"sync"
)

// state is what is known about the connections between servers and agents.
type state struct {
	mu        sync.Mutex
	connected int
	draining  bool
	last      error
	metrics   *Metrics
}

// joined records a connection. The returned function, which must be called once, records its end.
func (s *state) joined() (left func(error)) {
	s.add(1, nil)
	return func(err error) { s.add(-1, err) }
}

func (s *state) add(change int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected += change
	s.metrics.peers.Set(float64(s.connected))
	if err != nil {
		s.last = err
	}
}

// failed records an attempt to connect that failed.
func (s *state) failed(err error) { s.add(0, err) }

// drain makes this side not ready, before it ends.
func (s *state) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
}

// ready returns why there is no connection, nil if there is one. peer is what the other sides are.
func (s *state) ready(peer string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return errors.New("the program ends")
	case s.connected > 0:
		return nil
	case s.last != nil:
		return fmt.Errorf("no %s is connected: %w", peer, s.last)
	}
	return fmt.Errorf("no %s is connected yet", peer)
}
