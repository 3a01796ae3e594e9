package measure

import (
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of Linux.
const rusageThread = 1

// ThreadTime returns the processor time of the calling thread. The goroutine must be locked to it. Differences do not depend on what other
// programs do at the same time. It is 0 where the system does not report it.
func ThreadTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(rusageThread, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
