package machine

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// linkName is the name of the network device in the machine.
const linkName = "eth0"

// Init runs process 1 of a machine. It returns only if the setup of the machine fails.
func Init(directory string) error {
	c, err := Read(directory)
	if err != nil {
		return err
	}
	connected, started := os.NewFile(3, "connected"), os.NewFile(4, "started")
	for _, f := range []*os.File{connected, started} {
		unix.CloseOnExec(int(f.Fd()))
	}
	trees, err := openTrees(c)
	if err != nil {
		return err
	}
	if err := mountAll(trees); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if _, err := connected.Read(make([]byte, 1)); err == nil {
		return fmt.Errorf("the launcher sent data over a pipe that it must only close")
	}
	if err := divideCgroups(); err != nil {
		return err
	}
	if err := connectMachine(c); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return fmt.Errorf("enabling forwarding: %w", err)
	}
	if _, err := started.WriteString("."); err != nil {
		return fmt.Errorf("reporting the start: %w", err)
	}
	if err := started.Close(); err != nil {
		return fmt.Errorf("reporting the start: %w", err)
	}
	newSupervisor(os.Stderr, time.Now).run(context.Background(), c.Services)
	return nil
}

// divideCgroups enables the controllers of cgroups v2 for the cgroups of Pods. At this point, the launcher has left the
// cgroup.
func divideCgroups() error {
	all, err := Hierarchies()
	if err != nil || !unifiedOnly(all) {
		return err
	}
	if err := enterLeaf(cgroupRoot); err != nil {
		return err
	}
	return enableControllers(cgroupRoot)
}

// connectMachine sets up the machine's end of the link that connectHost creates.
func connectMachine(c *Config) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("setting the loopback device up: %w", err)
	}
	link, err := netlink.LinkByName(linkName)
	if err != nil {
		return fmt.Errorf("finding the link to the host: %w", err)
	}
	if err := configure(link, c.Machine.String()); err != nil {
		return err
	}
	all := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: all, Gw: c.Host.Addr().AsSlice()}); err != nil {
		return fmt.Errorf("adding the default route: %w", err)
	}
	return nil
}
