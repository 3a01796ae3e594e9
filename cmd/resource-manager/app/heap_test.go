package app

import "testing"

func TestBusyGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 250, 1 << 20: 250, 16 << 20: 250, 20 << 20: 200, 32 << 20: 125, 80 << 20: 50, 1 << 30: 50} {
		if got := (heap{live: live}).busyGCPercent(); got != want {
			t.Errorf("%d bytes live: %d %%, want %d %%", live, got, want)
		}
	}
}

// TestQuiet checks that the allocations of a metrics scrape, a sixth of the live heap, do not count as work, and that applying
// objects does.
func TestQuiet(t *testing.T) {
	before := heap{allocated: 1 << 40}
	for name, test := range map[string]struct {
		live, allocated uint64
		want            bool
	}{
		"rest":                        {16 << 20, 0, true},
		"a small heap at rest":        {1 << 20, 1 << 20, true},
		"a small heap with work":      {1 << 20, 2 << 20, false},
		"a scrape":                    {16 << 20, 3 << 20, true},
		"work":                        {16 << 20, 5 << 20, false},
		"a scrape of a great heap":    {64 << 20, 12 << 20, true},
		"much work with a great heap": {64 << 20, 20 << 20, false},
	} {
		if got := (heap{live: test.live, allocated: before.allocated + test.allocated}).quiet(before); got != test.want {
			t.Errorf("%s: quiet is %t", name, got)
		}
	}
}

func TestReadHeap(t *testing.T) {
	if now := readHeap(); now.allocated == 0 {
		t.Errorf("%+v", now)
	}
}
