package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Hierarchy is a mounted hierarchy of cgroups.
type Hierarchy struct {
	// Controllers is the mount option of v1, for example "memory" or "name=systemd". It is empty for v2.
	Controllers string
	// Mount is its mount point. Path is the cgroup of this process in it.
	Mount, Path string
}

// Directory returns the directory of the cgroup of this process.
func (h Hierarchy) Directory() string { return filepath.Join(h.Mount, h.Path) }

const cgroupRoot = "/sys/fs/cgroup"

// Hierarchies returns the mounted hierarchies.
func Hierarchies() ([]Hierarchy, error) {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("finding the cgroups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("finding the cgroups: %w", err)
	}
	return hierarchies(cgroups, mounts), nil
}

func hierarchies(cgroups, mountinfo []byte) []Hierarchy {
	mounts := map[string]string{}
	for line := range bytes.Lines(mountinfo) {
		before, after, found := strings.Cut(strings.TrimSpace(string(line)), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) < 3 || !strings.HasPrefix(fields[4], cgroupRoot) {
			continue
		}
		switch kind[0] {
		case "cgroup2":
			mounts[""] = fields[4]
		case "cgroup":
			for option := range strings.SplitSeq(kind[2], ",") {
				mounts[option] = fields[4]
			}
		}
	}
	var result []Hierarchy
	for line := range bytes.Lines(cgroups) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		first, _, _ := strings.Cut(parts[1], ",")
		if mount, found := mounts[first]; found {
			result = append(result, Hierarchy{parts[1], mount, parts[2]})
		}
	}
	return result
}

// unifiedOnly reports whether only cgroups v2 are mounted.
func unifiedOnly(all []Hierarchy) bool {
	return len(all) == 1 && all[0].Controllers == ""
}

// join creates a cgroup with that name in each hierarchy and moves this process into it. The cgroup is below that of this
// process, or below the root if only v2 is mounted: in v2, a cgroup with processes, such as that of this process, cannot
// give controllers to its children.
func join(name string) error {
	all, err := Hierarchies()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no cgroups are mounted below " + cgroupRoot)
	}
	for _, h := range all {
		directory := filepath.Join(h.Directory(), name)
		if unifiedOnly(all) {
			if err := enableControllers(h.Mount); err != nil {
				return err
			}
			directory = filepath.Join(h.Mount, name)
		}
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
		if slices.Contains(strings.Split(h.Controllers, ","), "cpuset") {
			if err := inheritCPUs(h.Directory(), directory); err != nil {
				return err
			}
		}
		if err := enter(directory); err != nil {
			return err
		}
	}
	return nil
}

// enter moves this process into a cgroup.
func enter(directory string) error {
	if err := os.WriteFile(filepath.Join(directory, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("entering a cgroup: %w", err)
	}
	return nil
}

// leaf is the cgroup of the services of a machine if only v2 is mounted. A cgroup that gives controllers to its children
// has no processes.
const leaf = "init"

// enterLeaf moves this process into the leaf of a v2 cgroup.
func enterLeaf(group string) error {
	directory := filepath.Join(group, leaf)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("creating a cgroup: %w", err)
	}
	return enter(directory)
}

// enableControllers enables all controllers of a v2 cgroup for its children.
func enableControllers(group string) error {
	available, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the controllers of cgroups: %w", err)
	}
	for controller := range strings.FieldsSeq(string(available)) {
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o600); err != nil {
			return fmt.Errorf("enabling the controller %s: %w", controller, err)
		}
	}
	return nil
}

// inheritCPUs copies the CPUs and memory nodes of the parent to a v1 cgroup. A new cgroup has none.
func inheritCPUs(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(child, file), content, 0o600); err != nil {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
	}
	return nil
}

// groups returns the cgroups with that name in all hierarchies.
func groups(name string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(cgroupRoot, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed concurrently
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case entry.Name() == name:
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for the cgroups %s: %w", name, err)
	}
	return found, nil
}

// processes returns the processes in cgroups and their descendants.
func processes(groups []string) ([]int, error) {
	pids := map[int]bool{}
	for _, group := range groups {
		err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return ignoreMissing(err)
			}
			content, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			if err != nil {
				return ignoreMissing(err)
			}
			for scanner := bufio.NewScanner(bytes.NewReader(content)); scanner.Scan(); {
				if pid, err := strconv.Atoi(scanner.Text()); err == nil && pid > 0 {
					pids[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("finding the processes of %s: %w", group, err)
		}
	}
	var sorted []int
	for pid := range pids {
		sorted = append(sorted, pid)
	}
	slices.Sort(sorted)
	return sorted, nil
}

// below returns a cgroup and its descendants, outermost first.
func below(group string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			all = append(all, path)
		}
		return ignoreMissing(err)
	})
	return all, err
}

// removeGroups removes cgroups, innermost first.
func removeGroups(groups []string) error {
	var errs []error
	for _, group := range groups {
		all, err := below(group)
		errs = append(errs, err)
		for _, directory := range slices.Backward(all) {
			if err := os.Remove(directory); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func ignoreMissing(err error) error {
	// The files of an ending process cannot be read: the error is ENODEV.
	if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "no such device") {
		return nil
	}
	return err
}
