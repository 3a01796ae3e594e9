package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapRoom is the minimum number of bytes that can be allocated between two garbage collections while the process is
	// busy. With Go's default and a small heap, the collections would take a fifth of the CPU time while many objects are
	// applied.
	heapRoom = 40 << 20
	// quietGCPercent lets the heap grow by half of its live size when the process is not busy, which is half of Go's
	// default. Nearly all of the heap is watched objects, which live long, so there is little garbage.
	quietGCPercent = 50
	// restGCPercent lets the heap grow by a fifth while the process is idle. It allocates so little then that the garbage
	// collector hardly ever runs.
	restGCPercent = 20
	// mostGCPercent limits the growth of a nearly empty heap.
	mostGCPercent = 250
	// heapInterval is how often the heap is checked.
	heapInterval = time.Second
	// quietBytes and quietShare limit the bytes that an idle process allocates per interval, absolutely and as a fraction of
	// the live heap. They allow for a scrape of metrics, which covers every ManagedResource.
	quietBytes = 1 << 20
	quietShare = 4
	// quietIntervals is the number of idle intervals before memory is returned to the operating system.
	quietIntervals = 5
)

// heap is the state of Go's heap in bytes: the live heap after the last collection, and all allocations since the start.
type heap struct{ live, allocated uint64 }

func readHeap() heap {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return heap{live: samples[0].Value.Uint64(), allocated: samples[1].Value.Uint64()}
}

// busyGCPercent returns the growth of the heap, in percent of the live heap, between two collections while the process is
// busy.
func (h heap) busyGCPercent() int {
	if h.live == 0 {
		return mostGCPercent
	}
	return int(min(max(heapRoom*100/h.live, quietGCPercent), mostGCPercent))
}

// quiet reports whether the process is idle. before is the state of the heap one heapInterval ago.
func (h heap) quiet(before heap) bool {
	return h.allocated-before.allocated <= max(quietBytes, h.live/quietShare)
}

// tendHeap trades memory for CPU time while the process is busy, and returns the memory afterwards, until the context
// ends. It does nothing if the environment variable GOGC is set.
func tendHeap(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(quietGCPercent)
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	for quiet, before := 0, readHeap(); ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := readHeap()
		switch {
		case !now.quiet(before):
			quiet = 0
			debug.SetGCPercent(now.busyGCPercent())
		case quiet <= quietIntervals:
			if quiet++; quiet == quietIntervals {
				debug.SetGCPercent(restGCPercent)
				debug.FreeOSMemory()
			}
		}
		before = now
	}
}
