package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Commands of the machine's program. It must run [Launch] and [Init] for them.
const (
	LaunchCommand = "machine-launch"
	InitCommand   = "machine-init"
)

// lock is held while addresses on the host are being taken, so that two machines do not take the same ones. Only root can
// write to its directory, so that others cannot put a link in its place.
const lock = "/run/trellis-landscape.lock"

// Start starts the machine, and returns when its network is set up and its process 1 is running. The program must run
// [Launch] for [LaunchCommand], and [Init] for [InitCommand].
func Start(ctx context.Context, program string, c *Config) error {
	for _, directory := range []string{"logs", "var"} {
		if err := os.MkdirAll(filepath.Join(c.Directory, directory), 0o755); err != nil {
			return fmt.Errorf("starting the machine: %w", err)
		}
	}
	if err := c.Write(); err != nil {
		return err
	}
	// The launcher enters the cgroups of the machine. This process does not change its cgroups.
	launcher := exec.CommandContext(ctx, program, LaunchCommand, c.Directory) //nolint:gosec // a program of the landscape
	launcher.Dir = "/"
	launcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if output, err := launcher.CombinedOutput(); err != nil {
		return fmt.Errorf("starting the machine: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Launch enters new cgroups, starts process 1 of the machine in new namespaces, connects it to the host, and returns.
func Launch(directory string) error {
	c, err := Read(directory)
	if err != nil {
		return err
	}
	if err := join(c.Name); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(directory, "logs", "machine.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	connected, connect, err := os.Pipe()
	if err != nil {
		return err
	}
	started, start, err := os.Pipe()
	if err != nil {
		return err
	}
	process := exec.Command("/proc/self/exe", InitCommand, directory) //nolint:noctx // it keeps running when this process ends
	process.Args[0] = c.Name
	process.Dir = "/"
	process.Stdout, process.Stderr = log, log
	process.ExtraFiles = []*os.File{connected, start}
	process.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
			unix.CLONE_NEWCGROUP,
	}
	if err := process.Start(); err != nil {
		return fmt.Errorf("starting process 1 of the machine: %w", err)
	}
	if err := errors.Join(leaveRoot(c.Name), connectHost(c, process.Process.Pid)); err != nil {
		return errors.Join(err, process.Process.Kill())
	}
	// Process 1 waits until this end of the pipe is closed. The pipe is also closed if this process is killed: process 1 then
	// finds no network and ends.
	if err := errors.Join(connect.Close(), start.Close()); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := started.Read(answer); err != nil {
		return fmt.Errorf("process 1 of the machine ended during its start, see %s", log.Name())
	}
	return nil
}

// leaveRoot moves this process out of the root of the machine's v2 cgroups, which enables its controllers for its children.
func leaveRoot(name string) error {
	all, err := Hierarchies()
	if err != nil || !unifiedOnly(all) {
		return err
	}
	return enterLeaf(filepath.Join(all[0].Mount, name))
}

// connectHost creates the link to the machine and the routes to its networks.
func connectHost(c *Config, pid int) error {
	unlock, err := hold()
	if err != nil {
		return err
	}
	defer unlock()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = c.Name
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: linkName, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("adding the network device %s: %w", c.Name, err)
	}
	link, err := netlink.LinkByName(c.Name)
	if err != nil {
		return fmt.Errorf("finding the network device %s: %w", c.Name, err)
	}
	if err := configure(link, c.Host.String()); err != nil {
		return err
	}
	for _, route := range c.Routes {
		destination := &net.IPNet{IP: route.Addr().AsSlice(), Mask: net.CIDRMask(route.Bits(), route.Addr().BitLen())}
		err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: destination, Gw: c.Machine.Addr().AsSlice()})
		if err != nil {
			return fmt.Errorf("adding the route to %s: %w", route, err)
		}
	}
	return nil
}

func configure(link netlink.Link, address string) error {
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("the address %s: %w", address, err)
	}
	if err := netlink.AddrAdd(link, parsed); err != nil {
		return fmt.Errorf("adding the address %s: %w", address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting the link %s up: %w", link.Attrs().Name, err)
	}
	return nil
}

func hold() (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the network of the host: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking the network of the host: %w", err)
	}
	return func() { _ = f.Close() }, nil // closing the file releases the lock
}
