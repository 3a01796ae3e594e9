package main

import "testing"

func TestBusyGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 1 << 20: 100, 16 << 20: 100, 20 << 20: 80, 32 << 20: 50, 1 << 30: 50} {
		if got := (heap{live: live}).busyGCPercent(); got != want {
			t.Errorf("%d bytes live: %d %%, want %d %%", live, got, want)
		}
	}
}

func TestReadHeap(t *testing.T) {
	if now := readHeap(); now.allocated == 0 {
		t.Errorf("%+v", now)
	}
}
