package forward

import (
	"context"
	"time"
)

const (
	// Quiet is how long nothing is received on a connection until no request is expected to be answered on it.
	Quiet = time.Second
	// drainInterval is how often connections are checked for it.
	drainInterval = 100 * time.Millisecond
)

// Drain ends all connections: each one when nothing was received on it for a time, such as Quiet, so that requests that are answered are not cut
// off, and the others when the context ends. Listeners must be closed before. New connections are closed. It returns how many were cut off.
func (s *Server) Drain(ctx context.Context, quiet time.Duration) (cut int) {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for s.endQuiet(time.Now(), quiet) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s.Close()
		}
	}
	s.Close()
	return 0
}

// endQuiet ends the connections that are quiet, and returns how many are left, including those that are not forwarded yet.
func (s *Server) endQuiet(now time.Time, quiet time.Duration) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.sessions {
		if one.quiet(now, quiet) {
			one.close()
			delete(s.sessions, one)
		}
	}
	return len(s.sessions) + len(s.opening)
}

// Close ends all connections at once, and returns how many there were.
func (s *Server) Close() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	count := len(s.sessions) + len(s.opening)
	for one := range s.sessions {
		one.close()
	}
	for conn := range s.opening {
		_ = conn.Close()
	}
	return count
}
