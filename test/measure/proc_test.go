package measure

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	stat, err := parseStat("42 (a (strange) name) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 9 9 20 0 10 0 100 1 2")
	if want := (processStat{"a (strange) name", 7, 2 * time.Second}); err != nil || stat != want {
		t.Errorf("got %+v, %v, want %+v", stat, err, want)
	}
	for _, content := range []string{"", "42 (x) S 7", "42 (x) S x 42 42 0 -1 4194560 1 2 3 4 150 50 9"} {
		if _, err := parseStat(content); err == nil {
			t.Errorf("got no error for %q", content)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus("Name:\tx\nVmPeak:\t  9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	if want := (Memory{RSS: 1 << 20, Peak: 2 << 20}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, content := range []string{"", "VmRSS:\tmuch\n"} {
		if _, err := parseStatus(content); err == nil {
			t.Errorf("got no error for %q", content)
		}
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 30 9999 8888 1 2 3 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if err != nil || got != 1560*time.Millisecond {
		t.Errorf("got %s, %v, want the time without idle, iowait and guests", got, err)
	}
	for _, content := range []string{"", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"} {
		if _, err := parseBusy(content); err == nil {
			t.Errorf("got no error for %q", content)
		}
	}
}

func TestUsageSince(t *testing.T) {
	before := Usage{All: 10, Own: CPUTimes{"a": 1, "b": 2}}
	used := Usage{All: 20, Own: CPUTimes{"a": 4, "b": 2, "c": 5}}.Since(before)
	if used.All != 10 || len(used.Own) != 2 || used.Own["a"] != 3 || used.Own["c"] != 5 || used.Own.Total() != 8 {
		t.Errorf("got %+v", used)
	}
}

func TestProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	if _, err := CPUOf(os.Getpid()); err != nil {
		t.Error(err)
	}
	if got, err := MemoryOf(os.Getpid()); err != nil || got.Peak < got.RSS {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ReadUsage(); err != nil || got.All < got.Own.Total() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseMetric(t *testing.T) {
	const metrics = "# HELP heap x\nheap_bytes_total 1\nheap_bytes 1.2345e+07\n"
	if got, err := ParseMetric(metrics, "heap_bytes"); err != nil || got != 12345000 {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := ParseMetric(metrics, "missing"); err != nil || got != 0 {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := ParseMetric("heap_bytes x\n", "heap_bytes"); err == nil {
		t.Error("got no error for a missing number")
	}
}
