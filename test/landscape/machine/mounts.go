package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a part of the host's file system that the machine has at another path.
type tree struct {
	fd     int
	target string
	file   bool
}

// openTrees clones the mounts for the machine before the rest of the file system becomes read-only.
func openTrees(c *Config) ([]tree, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("separating the mounts from those of the host: %w", err)
	}
	sources := map[string]string{State: c.Directory, Images: c.Images, "/var": filepath.Join(c.Directory, "var"), Programs: c.Programs}
	for name, path := range c.Files {
		sources[filepath.Join(Files, name)] = path
	}
	var trees []tree
	for target, source := range sources {
		fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", source, err)
		}
		info, err := os.Stat(source)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", source, err)
		}
		trees = append(trees, tree{fd, target, !info.IsDir()})
	}
	return trees, nil
}

// mountAll mounts the machine's own /proc, /sys, /run, /tmp, /var and cgroups. The rest of its file system is the host's,
// read-only.
func mountAll(trees []tree) error {
	all, err := Hierarchies()
	if err != nil {
		return err
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, readOnly); err != nil {
		return fmt.Errorf("making the file system of the host read-only: %w", err)
	}
	for _, m := range []struct {
		kind, target, options string
		flags                 uintptr
	}{
		{"proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"tmpfs", "/run", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/tmp", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/dev/shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.kind, m.target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	for _, t := range trees {
		if err := t.move(); err != nil {
			return fmt.Errorf("mounting %s: %w", t.target, err)
		}
	}
	if err := os.Symlink("/run", "/var/run"); err != nil && !os.IsExist(err) {
		return fmt.Errorf("linking /var/run: %w", err)
	}
	if err := mountCgroups(all); err != nil {
		return err
	}
	if err := shieldTunables(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts with containers: %w", err)
	}
	return nil
}

func (t tree) move() error {
	defer unix.Close(t.fd) //nolint:errcheck // the mount stays
	if t.file {
		if err := touch(t.target); err != nil {
			return err
		}
	} else if err := os.MkdirAll(t.target, 0o755); err != nil {
		return err
	}
	return unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func touch(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// mountCgroups mounts the hierarchies again. The machine sees only its own cgroup and those below.
func mountCgroups(all []Hierarchy) error {
	if unifiedOnly(all) {
		if err := unix.Mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", cgroupRoot, err)
		}
		return nil
	}
	if err := unix.Mount("tmpfs", cgroupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting %s: %w", cgroupRoot, err)
	}
	for _, h := range all {
		if h.Controllers == "" {
			continue // programs differ in how they use v2 if v1 is mounted too
		}
		target := filepath.Join(cgroupRoot, strings.TrimPrefix(h.Controllers, "name="))
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
		options := h.Controllers
		if strings.HasPrefix(options, "name=") {
			options = "none," + options
		}
		if err := unix.Mount("cgroup", target, "cgroup", 0, options); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	return nil
}

// tunables are host-wide kernel settings and the values that the kubelet sets. It does not write a setting that already has
// its value.
var tunables = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// shieldTunables shows the kubelet the values that it expects, so that it does not change those of the host.
func shieldTunables() error {
	for name, value := range tunables {
		target := "/proc/sys/" + name
		if _, err := os.Stat(target); os.IsNotExist(err) {
			continue
		}
		file := "/run/landscape/tunables/" + name
		if err := touch(file); err != nil {
			return fmt.Errorf("hiding %s: %w", target, err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return fmt.Errorf("hiding %s: %w", target, err)
		}
		if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", target, err)
		}
	}
	return nil
}
