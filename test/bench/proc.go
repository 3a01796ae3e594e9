package main

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

// processStat is /proc/PID/stat as far as it is needed.
type processStat struct {
	// program is the beginning of its name.
	program string
	parent  int
	cpu     time.Duration
}

func parseStat(content string) (processStat, error) {
	// The name of the program, in brackets, may hold anything.
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

// cpuOf returns the CPU time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	stat, err := parseStat(string(content))
	return stat.cpu, err
}

// memory is what a process holds, in bytes.
type memory struct {
	RSS, Peak int64
}

func memoryOf(pid int) (memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read the memory of a process: %w", err)
	}
	return parseStatus(string(content))
}

func parseStatus(content string) (memory, error) {
	var result memory
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

// cpuTimes are CPU times by program.
type cpuTimes map[string]time.Duration

func (c cpuTimes) total() time.Duration {
	var total time.Duration
	for _, cpu := range c {
		total += cpu
	}
	return total
}

// machineUsage is the CPU time that the whole machine has used, and this program with all that it started.
type machineUsage struct {
	all time.Duration
	own cpuTimes
}

func readUsage() (machineUsage, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machineUsage{}, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	result := machineUsage{own: cpuTimes{}}
	if result.all, err = parseBusy(string(content)); err != nil {
		return machineUsage{}, err
	}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return machineUsage{}, fmt.Errorf("read the CPU times of all processes: %w", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		stat, err := parseStat(string(content))
		if err != nil {
			return machineUsage{}, err
		}
		if stat.parent == os.Getpid() || filepath.Dir(path) == fmt.Sprintf("/proc/%d", os.Getpid()) {
			result.own[stat.program] += stat.cpu
		}
	}
	return result, nil
}

// since returns what was used since an earlier reading.
func (u machineUsage) since(before machineUsage) machineUsage {
	result := machineUsage{all: u.all - before.all, own: cpuTimes{}}
	for program, cpu := range u.own {
		if used := cpu - before.own[program]; used > 0 {
			result.own[program] = used
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
	for i, field := range fields[1:9] { // what follows is guests, who are counted as users too
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
