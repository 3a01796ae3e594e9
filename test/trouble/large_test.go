package trouble

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestTenThousandObjects lets users change 10,000 objects of 100 ManagedResources while requests and watches fail
// at random.
func TestTenThousandObjects(t *testing.T) {
	takesLong(t)
	w := newWorld(t)
	source, target := newProxy(t, w.controlPlane.Config()), newProxy(t, w.controlPlane.Config())
	weather := newWeather(5, 0.02)
	weather.over(source, target)
	p := w.startBinary(w.kubeconfigOf(source.config()), w.kubeconfigOf(target.config()), noElection)
	s := w.newStorm(5, 100, 100)
	s.timeout = 20 * time.Minute
	s.begin()
	s.rage(600, 50*time.Millisecond)
	weather.clear()
	s.calm()
	t.Logf("%v; %d requests, %d faults", s.done, weather.passed.Load(), weather.faults.Load())
	p.Stop()
}

// TestLittleMemory runs a resource-manager with a limit of 128 MiB on 3,000 objects of 300 ManagedResources.
func TestLittleMemory(t *testing.T) {
	takesLong(t)
	const limit = 128 << 20
	w := newWorld(t)
	admin := w.kubeconfigOf(w.controlPlane.Config())
	// The limits of a process count its mapped memory, including stacks of threads, and not its resident memory. So
	// the test limits Go's runtime and checks the peak.
	limited := func(command *exec.Cmd) { command.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", limit*9/10)) }
	p := w.startBinary(admin, admin, noElection, limited)
	s := w.newStorm(6, 300, 10)
	s.timeout = 10 * time.Minute
	s.begin()
	s.rage(300, 50*time.Millisecond)
	s.calm()
	peak := memoryOf(t, p, "VmHWM")
	t.Logf("3,000 objects: peak %d KiB, now %d KiB", peak>>10, memoryOf(t, p, "VmRSS")>>10)
	if peak > limit {
		t.Errorf("the process used %d KiB, want at most %d", peak>>10, limit>>10)
	}
	p.Stop()
}

// memoryOf returns a figure of a process in bytes.
func memoryOf(tb testing.TB, p *kit.Process, name string) int {
	tb.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Command.Process.Pid))
	kit.Must(tb, err)
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			kibibytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			kit.Must(tb, err)
			return kibibytes << 10
		}
	}
	tb.Fatalf("no %s in %s", name, content)
	return 0
}
