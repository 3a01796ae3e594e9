package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapRoom is how much may be allocated while there is much to do, at least, before the garbage collector runs. By Go's default, and for
	// a small heap, that would be so little that collecting takes a fifth of all CPU time while many objects are applied.
	heapRoom = 40 << 20
	// quietGCPercent has the heap grow by half of what lives in it otherwise, which is half as much as by Go's default: nearly all of it is
	// what watches show, which lives long, and little is thrown away.
	quietGCPercent = 50
	// restGCPercent has the heap grow by a fifth while there is nothing to do: so little is allocated then that the garbage collector hardly ever
	// runs.
	restGCPercent = 20
	// mostGCPercent bounds the room of a heap that is all but empty.
	mostGCPercent = 250
	// heapInterval is how often the heap is looked at.
	heapInterval = time.Second
	// quietBytes is how much may be allocated in this time when there is nothing to do, and quietShare is that as a part of what lives: a
	// scrape of metrics reports every ManagedResource, and is not work.
	quietBytes = 1 << 20
	quietShare = 4
	// quietIntervals is the number of idle intervals before memory is returned to the operating system.
	quietIntervals = 5
)

// heap is the state of Go's heap in bytes: what survived the last collection, and all that was allocated since the start.
type heap struct{ live, allocated uint64 }

func readHeap() heap {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return heap{live: samples[0].Value.Uint64(), allocated: samples[1].Value.Uint64()}
}

// busyGCPercent returns by how much the heap may grow, in percent of what lives in it, before the garbage collector runs while there is
// much to do.
func (h heap) busyGCPercent() int {
	if h.live == 0 {
		return mostGCPercent
	}
	return int(min(max(heapRoom*100/h.live, quietGCPercent), mostGCPercent))
}

// quiet reports whether there is nothing to do, from the heap as it was one heapInterval ago.
func (h heap) quiet(before heap) bool {
	return h.allocated-before.allocated <= max(quietBytes, h.live/quietShare)
}

// tendHeap trades memory for CPU time while there is much to do, and gives it back afterwards, until the context ends. With the environment
// variable GOGC, the garbage collector runs as that says.
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
