package landscape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

// MissingError lists the requirements of a landscape that a machine does not meet, one per line.
type MissingError []string

func (m MissingError) Error() string {
	return "this machine cannot run a landscape:\n  - " + strings.Join(m, "\n  - ")
}

// host is the state of a machine that [check] examines.
type host struct {
	os          string
	user        int
	filesystems string // /proc/filesystems
	hierarchies []machine.Hierarchy
	directory   string              // the type of the file system that the landscape's directory is on
	exists      func(string) bool   // whether a file matches the pattern
	program     func(string) bool   // whether the program is in PATH
	library     func(string) bool   // whether pkg-config finds the library
	limit       func(string) uint64 // the number in a file, 0 if the file does not exist
	openFiles   uint64
}

// wanted are the host-wide limits and the values that they are raised to. A landscape with several clusters exceeds the
// defaults of Linux.
var wanted = map[string]uint64{
	"/proc/sys/fs/inotify/max_user_instances": 8192,
	"/proc/sys/fs/inotify/max_user_watches":   524288,
	// kube-proxy on machines wants exactly these values, and cannot set them for the host.
	"/proc/sys/net/netfilter/nf_conntrack_max":     1048576,
	"/sys/module/nf_conntrack/parameters/hashsize": 262144,
}

const minimumOpenFiles = 8192

// check returns the requirements that are not met, and the Debian packages that have to be installed.
func check(h host, distribution bool) (missing MissingError, packages []string) {
	add := func(format string, arguments ...any) { missing = append(missing, fmt.Sprintf(format, arguments...)) }
	if h.os != "linux" {
		add("the operating system is %s: a landscape needs Linux", h.os)
		return missing, nil
	}
	if h.user != 0 {
		add("only root can create namespaces, mounts and nftables rules: run it with sudo")
	}
	if len(h.hierarchies) == 0 {
		add("no cgroups are mounted below /sys/fs/cgroup: mount them")
	}
	v1 := len(h.hierarchies) != 1 || h.hierarchies[0].Controllers != ""
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"} {
		if v1 && len(h.hierarchies) > 0 && !hasController(h.hierarchies, controller) {
			add("cgroups v1 are mounted without the controller %s", controller)
		}
	}
	if !strings.Contains(h.filesystems, "\toverlay\n") {
		add("the kernel has no overlayfs: modprobe overlay")
	}
	if h.directory == "overlay" || h.directory == "tmpfs" {
		add("the directory of the landscape is on %s, which cannot hold the layers of containers: choose another one with --directory",
			h.directory)
	}
	if !h.exists("/proc/sys/net/bridge/bridge-nf-call-iptables") {
		add("the kernel does not filter packets on bridges: modprobe br_netfilter")
	}
	if h.openFiles < minimumOpenFiles {
		add("a process may open %d files, but needs %d: ulimit -n %d", h.openFiles, minimumOpenFiles, minimumOpenFiles)
	}
	for _, p := range neededPackages(distribution) {
		if !p.there(h) {
			packages = append(packages, p.name)
		}
	}
	return missing, packages
}

type debianPackage struct {
	name  string
	there func(host) bool
}

func neededPackages(distribution bool) []debianPackage {
	program := func(name string) func(host) bool { return func(h host) bool { return h.program(name) } }
	packages := []debianPackage{
		{"nftables", program("nft")},
		{"netbase", func(h host) bool { return h.exists("/etc/protocols") }}, // for the nft of kube-proxy, as in the image of kube-proxy
	}
	if distribution {
		// Debian's runc needs the library.
		return append(packages, debianPackage{"libseccomp2", func(h host) bool { return h.exists("/usr/lib/*/libseccomp.so.2") }})
	}
	// Parts of runc are written in C.
	return append(packages, debianPackage{"gcc", program("gcc")},
		debianPackage{"libc6-dev", func(h host) bool { return h.exists("/usr/include/stdlib.h") }},
		debianPackage{"pkg-config", program("pkg-config")},
		debianPackage{"libseccomp-dev", func(h host) bool { return !h.program("pkg-config") || h.library("libseccomp") }})
}

func hasController(all []machine.Hierarchy, controller string) bool {
	for _, h := range all {
		for name := range strings.SplitSeq(h.Controllers, ",") {
			if name == controller {
				return true
			}
		}
	}
	return false
}

// thisHost examines this machine.
func (l *Landscape) thisHost() (host, error) {
	h := host{os: runtime.GOOS, user: os.Getuid()}
	hierarchies, err := machine.Hierarchies()
	if err != nil {
		return h, err
	}
	h.hierarchies = hierarchies
	// modprobe has no effect on features that are loaded or built in. Those that it cannot load are reported as missing.
	_ = exec.Command("modprobe", "-a", "overlay", "br_netfilter", "nf_tables").Run() //nolint:noctx // see above
	content, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return h, fmt.Errorf("examining this machine: %w", err)
	}
	h.filesystems = string(content)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return h, fmt.Errorf("examining this machine: %w", err)
	}
	h.openFiles, h.limit = limit.Max, number
	if h.directory, err = filesystem(l.Directory); err != nil {
		return h, err
	}
	h.exists = func(path string) bool {
		matches, err := filepath.Glob(path)
		return err == nil && len(matches) > 0
	}
	h.program = func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
	h.library = func(name string) bool {
		return exec.Command("pkg-config", "--exists", name).Run() == nil //nolint:noctx // it is quick
	}
	return h, nil
}

func filesystem(path string) (string, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(path, &stat)
	for errors.Is(err, fs.ErrNotExist) && path != "/" {
		path = filepath.Dir(path)
		err = unix.Statfs(path, &stat)
	}
	if err != nil {
		return "", fmt.Errorf("finding the type of the file system of %s: %w", path, err)
	}
	switch stat.Type {
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", nil
	case unix.TMPFS_MAGIC:
		return "tmpfs", nil
	}
	return "other", nil
}

func number(path string) uint64 {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(content)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Preflight checks that this machine meets the requirements of a landscape. The error is a [MissingError].
func (l *Landscape) Preflight(ctx context.Context) error {
	h, err := l.thisHost()
	if err != nil {
		return err
	}
	missing, packages := check(h, l.Distribution)
	if len(packages) > 0 && len(missing) == 0 && l.InstallPackages {
		if err := l.install(ctx, packages); err != nil {
			return err
		}
		packages = nil
	}
	if len(packages) > 0 {
		missing = append(missing, "Debian packages are missing: apt-get install --no-install-recommends "+strings.Join(packages, " "))
	}
	if len(missing) > 0 {
		return missing
	}
	return nil
}

func (l *Landscape) install(ctx context.Context, packages []string) error {
	l.say("Installing Debian packages: %s", strings.Join(packages, " "))
	for _, arguments := range [][]string{{"update", "-qq"}, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)} {
		command := exec.CommandContext(ctx, "apt-get", arguments...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("installing %s with apt-get: %w\n%s", strings.Join(packages, " "), err, output)
		}
	}
	return nil
}

// limitsFile records the limits of the host before the first landscape raised them. It belongs to the host, like the
// limits: the removal of the last landscape restores them, no matter which landscape raised them. Neither the raised limits
// nor the file survive a restart of the host.
// Only root can write to its directory, so that others cannot put a link in its place.
const limitsFile = "/run/trellis-landscape-limits"

// raiseLimits raises limits of the host that are not namespaced, and records their previous values.
func (l *Landscape) raiseLimits() error {
	recorded, err := os.ReadFile(limitsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("raising limits: %w", err)
	}
	before := string(recorded)
	for path, value := range wanted {
		old := number(path)
		if old >= value {
			continue
		}
		if !strings.Contains(before, path+" ") {
			before += fmt.Sprintf("%s %d\n", path, old)
		}
		if err := os.MkdirAll(filepath.Dir(limitsFile), 0o755); err != nil {
			return fmt.Errorf("raising a limit: %w", err)
		}
		if err := os.WriteFile(limitsFile, []byte(before), 0o600); err != nil {
			return fmt.Errorf("raising a limit: %w", err)
		}
		if err := os.WriteFile(path, []byte(strconv.FormatUint(value, 10)), 0o600); err != nil {
			return fmt.Errorf("raising a limit: %w: run sysctl -w %s=%d", err, sysctl(path), value)
		}
		l.say("Raised the limit %s of this host from %d to %d, until the last landscape is removed.", sysctl(path), old, value)
	}
	return nil
}

func sysctl(path string) string {
	return strings.ReplaceAll(strings.TrimPrefix(path, "/proc/sys/"), "/", ".")
}

// others reports whether another landscape runs on this host.
func (l *Landscape) others() (bool, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return false, fmt.Errorf("looking for other landscapes: %w", err)
	}
	return slices.ContainsFunc(links, func(link netlink.Link) bool {
		name := link.Attrs().Name
		return strings.HasPrefix(name, namePrefix) && name != l.name
	}), nil
}

// restoreLimits restores limits that landscapes have raised, unless they have been changed since or another landscape needs
// them.
func (l *Landscape) restoreLimits() error {
	content, err := os.ReadFile(limitsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restoring limits: %w", err)
	}
	others, err := l.others()
	if err != nil {
		return err
	}
	if others {
		l.say("The limits of this host stay raised: another landscape needs them.")
		return nil
	}
	for line := range strings.Lines(string(content)) {
		path, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if want, known := wanted[path]; !known || number(path) != want {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			return fmt.Errorf("restoring the limit %s to %s: %w", sysctl(path), value, err)
		}
	}
	return os.Remove(limitsFile)
}
