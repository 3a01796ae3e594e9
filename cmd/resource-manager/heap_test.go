package main

import "testing"

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 200, 32 << 20: 100, 64 << 20: 50, 1 << 30: 50} {
		if got := (heap{live: live}).gcPercent(); got != want {
			t.Errorf("%d bytes live: %d %%, want %d %%", live, got, want)
		}
	}
}

func TestWasteful(t *testing.T) {
	before := heap{allocated: 100 << 20}
	for name, test := range map[string]struct {
		now  heap
		want bool
	}{
		"at rest, with garbage":     {heap{live: 20 << 20, used: 40 << 20, allocated: 101 << 20}, true},
		"at rest, with free memory": {heap{live: 20 << 20, used: 20 << 20, free: 10 << 20, allocated: 101 << 20}, true},
		"at rest, and small":        {heap{live: 20 << 20, used: 22 << 20, free: 1 << 20, allocated: 101 << 20}, false},
		"at work":                   {heap{live: 20 << 20, used: 40 << 20, allocated: 110 << 20}, false},
	} {
		if got := test.now.wasteful(before); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestReadHeap(t *testing.T) {
	if now := readHeap(); now.used == 0 || now.allocated == 0 {
		t.Errorf("%+v", now)
	}
}
