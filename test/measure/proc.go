package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// processStat has the required fields of /proc/PID/stat.
type processStat struct {
	// program is the beginning of the program's name.
	program string
	parent  int
	cpu     time.Duration
}

func parseStat(content string) (processStat, error) {
	// The name of the program, in parentheses, may contain any character.
	begin, end := strings.Index(content, "("), strings.LastIndex(content, ")")
	fields := strings.Fields(content[end+1:])
	if begin < 0 || end < begin || len(fields) < 13 {
		return processStat{}, fmt.Errorf("read the state of a process: %q has too few fields", content)
	}
	var numbers [3]int
	for i, field := range []int{1, 11, 12} { // parent, utime, stime
		var err error
		if numbers[i], err = strconv.Atoi(fields[field]); err != nil {
			return processStat{}, fmt.Errorf("read the state of a process: %w", err)
		}
	}
	return processStat{
		program: content[begin+1 : end], parent: numbers[0], cpu: time.Duration(numbers[1]+numbers[2]) * clockTick,
	}, nil
}

// CPUOf returns the CPU time that a process has used.
func CPUOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	stat, err := parseStat(string(content))
	return stat.cpu, err
}

// Memory is the memory of a process, in bytes.
type Memory struct {
	RSS, Peak int64
}

// MemoryOf returns the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of a process: %w", err)
	}
	return parseStatus(string(content))
}

func parseStatus(content string) (Memory, error) {
	var result Memory
	for line := range strings.Lines(content) {
		name, value, _ := strings.Cut(line, ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return result, fmt.Errorf("read the memory of a process: %w", err)
		}
		if name == "VmRSS" {
			result.RSS = kibibytes << 10
		} else {
			result.Peak = kibibytes << 10
		}
	}
	if result.RSS == 0 {
		return result, fmt.Errorf("read the memory of a process: no VmRSS in %q", content)
	}
	return result, nil
}

// CPUTimes are CPU times by program.
type CPUTimes map[string]time.Duration

// Total returns the sum.
func (c CPUTimes) Total() time.Duration {
	var total time.Duration
	for _, cpu := range c {
		total += cpu
	}
	return total
}

// Usage is the CPU time used by the whole machine, and by this program and its child processes.
type Usage struct {
	All time.Duration
	Own CPUTimes
}

// ReadUsage reads the usage so far.
func ReadUsage() (Usage, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	result := Usage{Own: CPUTimes{}}
	if result.All, err = parseBusy(string(content)); err != nil {
		return Usage{}, err
	}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("read the CPU times of all processes: %w", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		stat, err := parseStat(string(content))
		if err != nil {
			return Usage{}, err
		}
		if stat.parent == os.Getpid() || filepath.Dir(path) == fmt.Sprintf("/proc/%d", os.Getpid()) {
			result.Own[stat.program] += stat.cpu
		}
	}
	return result, nil
}

// Since returns the usage since an earlier reading.
func (u Usage) Since(before Usage) Usage {
	result := Usage{All: u.All - before.All, Own: CPUTimes{}}
	for program, cpu := range u.Own {
		if used := cpu - before.Own[program]; used > 0 {
			result.Own[program] = used
		}
	}
	return result
}

// parseBusy returns the time that all CPUs were not idle, from the first line of /proc/stat.
func parseBusy(content string) (time.Duration, error) {
	first, _, _ := strings.Cut(content, "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("read the CPU time of the machine: %q", first)
	}
	var busy time.Duration
	for i, field := range fields[1:9] { // the remaining fields are for guests, which are also counted as users
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of the machine: %w", err)
		}
		if i != 3 && i != 4 { // idle, iowait
			busy += time.Duration(ticks) * clockTick
		}
	}
	return busy, nil
}
