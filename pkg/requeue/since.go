package requeue

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TransientFor is how long failures that pass by themselves may follow each other until they are errors of an operation. An API server that
// restarts, or whose node is overloaded, is not at fault of each object that is reconciled meanwhile.
const TransientFor = 3 * time.Minute

// Since remembers since when something is true of objects, by their UIDs. The zero value is ready for use. It is safe for concurrent use.
type Since struct {
	mu    sync.Mutex
	times map[types.UID]time.Time
}

// Within reports whether something is true of an object, and has been for less than the limit. If it is not true, it forgets the object.
func (s *Since) Within(uid types.UID, is bool, now time.Time, limit time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !is {
		delete(s.times, uid)
		return false
	}
	since, known := s.times[uid]
	if !known {
		if s.times == nil {
			s.times = map[types.UID]time.Time{}
		}
		since, s.times[uid] = now, now
	}
	return now.Before(since.Add(limit))
}

// Forget forgets an object that was deleted.
func (s *Since) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.times, uid)
}

// Passes reports whether a pass has failed only for reasons that pass by themselves, and the passes before it have for less than
// [TransientFor]. Call it with the outcome of each pass, which may be nil.
func (s *Since) Passes(uid types.UID, failure error, now time.Time) bool {
	return s.Within(uid, failure != nil && OnlyOf(failure, IsTransient), now, TransientFor)
}
