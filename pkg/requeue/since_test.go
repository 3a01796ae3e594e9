package requeue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/leaderfence"
)

// TestPasses checks how long failures count as ones that pass by themselves.
func TestPasses(t *testing.T) {
	begin := time.Date(2026, time.November, 28, 11, 0, 0, 0, time.UTC)
	slow, own := fmt.Errorf("read: %w", context.DeadlineExceeded), errors.New("no Project has the namespace")
	fenced := fmt.Errorf("write: %w", leaderfence.ErrNotLeader)
	memory := &Since{}
	for i, step := range []struct {
		after   time.Duration
		failure error
		passes  bool
	}{
		{0, nil, false},
		{0, slow, true},
		{TransientFor - time.Second, fenced, true},
		{TransientFor, slow, false},
		{2 * TransientFor, slow, false},
		{2 * TransientFor, errors.Join(slow, own), false}, // the next failure is the first again
		{3 * TransientFor, slow, true},
		{3 * TransientFor, nil, false},
		{9 * TransientFor, errors.Join(slow, fenced), true},
	} {
		if got := memory.Passes("a", step.failure, begin.Add(step.after)); got != step.passes {
			t.Errorf("step %d, %v after %s: %t", i+1, step.failure, step.after, got)
		}
	}
	if !memory.Passes("b", slow, begin.Add(99*TransientFor)) {
		t.Error("objects share their memory")
	}
}
