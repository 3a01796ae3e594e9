package nodeproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/vishvananda/netlink"
)

// loopback is the interface that has the address if the kernel of a node has no dummy interfaces.
const loopback = "lo"

// checkInterval is how often the address is checked: other programs on the node could remove it.
const checkInterval = time.Minute

// network are the changes of the node's network, which need the capability NET_ADMIN.
type network interface {
	LinkByName(name string) (netlink.Link, error)
	LinkAdd(link netlink.Link) error
	LinkSetUp(link netlink.Link) error
	AddrReplace(link netlink.Link, address *netlink.Addr) error
}

// Address is an address of a node on an interface of its own, or on the loopback interface if the node's kernel has no dummy interfaces.
type Address struct {
	IP        net.IP
	Interface string

	network network
}

// NewAddress returns an address. The error is one of its text.
func NewAddress(ip, name string) (Address, error) {
	parsed := net.ParseIP(ip)
	if parsed == nil {
		return Address{}, fmt.Errorf("%q is not an IP address", ip)
	}
	return Address{IP: parsed, Interface: name, network: &netlink.Handle{}}, nil
}

// Ensure gives the node the address, if it does not have it.
func (a Address) Ensure() error {
	link, err := a.link()
	if err != nil {
		return err
	}
	bits := 8 * net.IPv6len
	if a.IP.To4() != nil {
		bits = 8 * net.IPv4len
	}
	if err := a.network.AddrReplace(link, &netlink.Addr{IPNet: &net.IPNet{IP: a.IP, Mask: net.CIDRMask(bits, bits)}}); err != nil {
		return fmt.Errorf("add the address %s to the interface %s: %w", a.IP, link.Attrs().Name, err)
	}
	if err := a.network.LinkSetUp(link); err != nil {
		return fmt.Errorf("activate the interface %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// link returns the interface for the address, which it creates if it is missing.
func (a Address) link() (netlink.Link, error) {
	link, err := a.network.LinkByName(a.Interface)
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = a.Interface
		link = &netlink.Dummy{LinkAttrs: attributes}
		err = a.network.LinkAdd(link)
		if errors.Is(err, syscall.EOPNOTSUPP) {
			link, err = a.network.LinkByName(loopback)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create the interface %s: %w", a.Interface, err)
	}
	return link, nil
}

// Keep ensures the address until the context ends.
func (a Address) Keep(ctx context.Context, log logr.Logger) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		if err := a.Ensure(); err != nil {
			log.Error(err, "The address of the API server cannot be kept")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
