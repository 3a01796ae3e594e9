package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapRoom is how much may be allocated, at least, before the garbage collector runs. By Go's default, and for a small heap, that would
	// be so little that collecting takes a fifth of all CPU time while many objects are applied.
	heapRoom = 32 << 20
	// leastGCPercent has a large heap grow by half of what lives in it, which is half as much as by Go's default: nearly all of it is what
	// watches show, which lives long, and little is thrown away.
	leastGCPercent = 50
	// mostGCPercent bounds the room of a heap that is all but empty.
	mostGCPercent = 400
	// heapInterval is how often the heap is looked at.
	heapInterval = 5 * time.Second
	// quietBytes is how much is allocated in this time, at most, when there is nothing to do.
	quietBytes = 2 << 20
	// worthFreeing is how much memory the process has to hold for nothing before it is given back.
	worthFreeing = 4 << 20
)

// heap is what Go tells of its heap, in bytes.
type heap struct {
	// live survived the last collection; used includes what was allocated since and is garbage by now, or not, and free what is kept for
	// further allocations.
	live, used, free uint64
	// allocated counts all allocations since the start.
	allocated uint64
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return heap{
		live: samples[0].Value.Uint64(), used: samples[1].Value.Uint64() + samples[2].Value.Uint64(),
		free: samples[3].Value.Uint64(), allocated: samples[4].Value.Uint64(),
	}
}

// gcPercent returns by how much the heap may grow, in percent of what lives in it, before the garbage collector runs.
func (h heap) gcPercent() int {
	if h.live == 0 {
		return mostGCPercent
	}
	return int(min(max(heapRoom*100/h.live, leastGCPercent), mostGCPercent)) //nolint:gosec // it is bounded
}

// wasteful tells whether the process holds much more memory than it needs, while it has nothing to do.
func (h heap) wasteful(before heap) bool {
	return h.allocated-before.allocated < quietBytes && h.used+h.free > h.live+worthFreeing
}

// tendHeap trades memory for CPU time while there is much to do, and gives memory back afterwards, until the context ends. The environment
// variable GOGC replaces the first.
func tendHeap(ctx context.Context) {
	fixed := os.Getenv("GOGC") != ""
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	for freed, before := false, readHeap(); ; {
		if !fixed {
			debug.SetGCPercent(before.gcPercent())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := readHeap()
		switch {
		case !now.wasteful(before):
			freed = freed && now.allocated-before.allocated < quietBytes
		case !freed:
			debug.FreeOSMemory()
			freed, now = true, readHeap() // once after each time of work
		}
		before = now
	}
}
