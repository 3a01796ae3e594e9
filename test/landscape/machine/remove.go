package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Process returns the process ID, on the host, of process 1 of the machine. It returns 0 if the machine is not running.
func Process(name string) (int, error) {
	groups, err := groups(name)
	if err != nil {
		return 0, err
	}
	pids, err := processes(groups)
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && isFirst(string(status)) {
			return pid, nil
		}
	}
	return 0, nil
}

// isFirst reports whether the content of /proc/<pid>/status is that of process 1 of a PID namespace directly below the
// host's.
func isFirst(status string) bool {
	state, zombie := "", false
	for line := range strings.Lines(status) {
		if ids, found := strings.CutPrefix(line, "NSpid:"); found {
			state = strings.Join(strings.Fields(ids), " ")
		}
		zombie = zombie || strings.HasPrefix(line, "State:\tZ")
	}
	_, inner, _ := strings.Cut(state, " ")
	return inner == "1" && !zombie
}

// Remove removes the machine: its processes, its cgroups, and its network device with its routes. The error names
// everything that it could not remove. Repeating it is safe, and so is calling it without a machine.
func Remove(ctx context.Context, name string) error {
	groups, err := groups(name)
	if err != nil {
		return err
	}
	if err := kill(ctx, groups); err != nil {
		return err
	}
	errs := []error{removeLink(name)}
	errs = append(errs, until(ctx, func() error { return removeGroups(groups) }))
	return errors.Join(errs...)
}

// kill kills the processes in cgroups, process 1 first. The kernel then kills the others.
func kill(ctx context.Context, groups []string) error {
	return until(ctx, func() error {
		pids, err := processes(groups)
		if err != nil {
			return err
		}
		var alive []string
		for _, pid := range pids {
			if isZombie(pid) {
				continue // it has ended, but stays in its cgroup until its parent reaps it
			}
			alive = append(alive, strconv.Itoa(pid))
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
		}
		if len(alive) > 0 {
			return errors.Join(thaw(groups), fmt.Errorf("processes are still running: %s", strings.Join(alive, ", ")))
		}
		return nil
	})
}

// thawed are the files of cgroups that freeze processes, with the content that ends that.
var thawed = map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"}

// thaw lets frozen processes continue. A killed process ends only then: runc freezes a container while it changes its limits, and leaves it
// frozen if it is killed itself.
func thaw(groups []string) error {
	var errs []error
	for _, group := range groups {
		directories, err := below(group)
		errs = append(errs, err)
		for _, directory := range directories {
			for name, content := range thawed {
				path := filepath.Join(directory, name)
				if _, err := os.Stat(path); err != nil {
					continue
				}
				errs = append(errs, ignoreMissing(os.WriteFile(path, []byte(content), 0o600)))
			}
		}
	}
	return errors.Join(errs...)
}

func isZombie(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "State:\tZ")
}

func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the network device %s: %w", name, err)
	}
	// The kernel might remove it concurrently, together with the network namespace of the machine.
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing the network device %s: %w", name, err)
	}
	return nil
}

// removeTimeout is how long [Remove] retries a step.
const removeTimeout = 20 * time.Second

// until retries a step while the kernel is still cleaning up.
func until(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// Processes returns the process IDs, on the host, of all processes of the machine.
func Processes(name string) ([]int, error) {
	groups, err := groups(name)
	if err != nil {
		return nil, err
	}
	return processes(groups)
}
