package landscape

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

// Status prints the running processes of the base cluster, and the memory that is not shared with others.
func (l *Landscape) Status() error {
	first, err := machine.Process(l.name)
	if err != nil {
		return err
	}
	if first == 0 {
		l.say("The base cluster is not running.")
		return nil
	}
	l.say("The base cluster %s is running: process %d, addresses %s, files in %s.", l.name, first, l.Network.Block(), l.Directory)
	pids, err := machine.Processes(l.name)
	if err != nil {
		return err
	}
	l.say("%8s  %-28s %10s", "PID", "PROGRAM", "MEMORY")
	total := 0
	for _, pid := range pids {
		name, kilobytes := describe(pid)
		if name == "" {
			continue // the process has ended
		}
		total += kilobytes
		l.say("%8d  %-28s %6d MiB", pid, name, kilobytes/1024)
	}
	l.say("%8d  %-28s %6d MiB (anonymous memory: programs and files are shared)", len(pids), "processes", total/1024)
	return nil
}

// Use is the memory of all processes of a program.
type Use struct {
	Program   string
	Processes int
	// KiB is their anonymous memory, in KiB.
	KiB int
}

// Memory returns the memory that each program of the base cluster uses, including Pods, in descending order.
func (l *Landscape) Memory() ([]Use, error) {
	pids, err := machine.Processes(l.name)
	if err != nil {
		return nil, err
	}
	byProgram := map[string]Use{}
	for _, pid := range pids {
		name, kilobytes := describe(pid)
		if name == "" {
			continue // the process has ended
		}
		use := byProgram[name]
		byProgram[name] = Use{name, use.Processes + 1, use.KiB + kilobytes}
	}
	return slices.SortedFunc(maps.Values(byProgram), func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.KiB, a.KiB), cmp.Compare(a.Program, b.Program))
	}), nil
}

// describe returns the name of a process and its anonymous memory in KiB.
func describe(pid int) (name string, kilobytes int) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", 0
	}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); key {
		case "Name": // at most 15 characters
			name = cmp.Or(program(pid), value)
		case "RssAnon":
			if n, err := strconv.Atoi(strings.TrimSuffix(value, " kB")); err == nil {
				kilobytes = n
			}
		}
	}
	return name, kilobytes
}

// program returns the name of the program that a process runs, without its directory.
func program(pid int) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	first, _, _ := strings.Cut(string(content), "\x00")
	if err != nil || first == "" {
		return ""
	}
	return filepath.Base(first)
}
