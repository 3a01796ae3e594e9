package landscape

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-k8s/trellis/test/landscape/build"
	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

// Node is the name of the base cluster's node.
const Node = "base"

// registryPort is the port of the registry at the address of the machine.
const registryPort = 5000

// Options configure a landscape.
type Options struct {
	// Root is the root of the repository whose programs run.
	Root string
	// Directory contains all files of the landscape.
	Directory string
	// Block is the block of addresses. If empty, it is the first of 10.99.0.0/16, 10.100.0.0/16 … that the host has no route
	// to.
	Block string
	// Distribution uses containerd, runc and CNI plugins of the Debian distribution instead of building them.
	Distribution bool
	// InstallPackages installs missing Debian packages.
	InstallPackages bool
	// Out receives the progress.
	Out io.Writer
}

// namePrefix is the prefix of the names of all landscapes.
const namePrefix = "landscape-"

// Landscape is a base cluster.
type Landscape struct {
	Options
	// Network is known once the landscape is up.
	Network Network
	name    string
	builder *build.Builder
	now     func() time.Time
	// otherPrograms is true if the distribution's programs are requested, but the landscape was started with built ones.
	otherPrograms bool
}

// New returns a landscape, which may be running or not.
func New(o Options) (*Landscape, error) {
	directory, err := filepath.Abs(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("the directory of the landscape: %w", err)
	}
	o.Directory = directory
	sum := sha256.Sum256([]byte(directory))
	// The name of a network device has at most 15 characters.
	l := &Landscape{Options: o, name: namePrefix + hex.EncodeToString(sum[:])[:5], builder: build.New(o.Root, o.Out), now: time.Now}
	l.readState()
	return l, nil
}

// Name returns the name of the landscape's cgroups and of its network device on the host.
func (l *Landscape) Name() string { return l.name }

func (l *Landscape) path(elements ...string) string {
	return filepath.Join(append([]string{l.Directory}, elements...)...)
}

// readState reads the addresses and the choice of programs of a landscape that was started from its directory. If they
// cannot be read, for example after an interrupted start, the landscape has none, but can be removed.
func (l *Landscape) readState() {
	c, err := machine.Read(l.Directory)
	if err != nil || !c.Machine.Addr().Is4() {
		return
	}
	b := c.Machine.Addr().As4()
	l.Network = Network{[2]byte{b[0], b[1]}}
	distribution := c.Programs == l.builder.Path(distributionPrograms)
	l.otherPrograms, l.Distribution = l.Distribution && !distribution, distribution
}

// chooseNetwork chooses the addresses of a landscape that is not running yet.
func (l *Landscape) chooseNetwork() error {
	if l.Network != (Network{}) {
		return nil
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("listing the routes of the host: %w", err)
	}
	taken := func(n Network) bool {
		for _, r := range routes {
			if r.Dst == nil || r.Dst.IP.IsUnspecified() {
				continue
			}
			address, _ := netip.AddrFromSlice(r.Dst.IP)
			bits, _ := r.Dst.Mask.Size()
			if n.Block().Overlaps(netip.PrefixFrom(address.Unmap(), bits)) {
				return true
			}
		}
		return false
	}
	wanted := candidates()
	if l.Block != "" {
		n, err := ParseNetwork(l.Block)
		if err != nil {
			return err
		}
		wanted = []Network{n}
	}
	for _, n := range wanted {
		if !taken(n) {
			l.Network = n
			return nil
		}
	}
	return fmt.Errorf("the host has routes into each of %d blocks of addresses, starting with %s: choose another one with --block",
		len(wanted), wanted[0].Block())
}

// Kubeconfig returns the path of a kubeconfig for an administrator.
func (l *Landscape) Kubeconfig() string { return l.path("kubeconfig") }

// Config returns a configuration that connects an administrator to the base cluster.
func (l *Landscape) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("connecting to the base cluster: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	return config, nil
}

// Running reports whether the machine of the landscape runs.
func (l *Landscape) Running() (bool, error) {
	pid, err := machine.Process(l.name)
	return pid > 0, err
}

func (l *Landscape) say(format string, arguments ...any) {
	fmt.Fprintf(l.Out, format+"\n", arguments...)
}

// Down removes everything that belongs to the landscape, except the built programs. The error names everything that it
// could not remove. Repeating it is safe.
func (l *Landscape) Down(ctx context.Context) error {
	if err := machine.Remove(ctx, l.name); err != nil {
		return fmt.Errorf("removing the machine %s: %w", l.name, err)
	}
	if err := l.restoreLimits(); err != nil {
		return err
	}
	if _, err := os.Stat(l.path(marker)); errors.Is(err, fs.ErrNotExist) {
		return l.removeIfEmpty()
	}
	if err := os.RemoveAll(l.Directory); err != nil {
		return fmt.Errorf("removing the files of the landscape: %w", err)
	}
	return nil
}

// marker is a file that only the directory of a landscape has. No other directory is removed.
const marker = "landscape"

func (l *Landscape) removeIfEmpty() error {
	entries, err := os.ReadDir(l.Directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the files of the landscape: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s has files that do not belong to a landscape: remove them, or choose another directory with --directory",
			l.Directory)
	}
	return os.Remove(l.Directory)
}

func (l *Landscape) makeDirectory() error {
	if err := os.MkdirAll(l.Directory, 0o755); err != nil {
		return fmt.Errorf("creating the directory of the landscape: %w", err)
	}
	entries, err := os.ReadDir(l.Directory)
	if err != nil {
		return fmt.Errorf("creating the directory of the landscape: %w", err)
	}
	if _, err := os.Stat(l.path(marker)); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s has files that do not belong to a landscape: choose another directory with --directory", l.Directory)
	}
	return os.WriteFile(l.path(marker), []byte(l.name+"\n"), 0o644) //nolint:gosec // not a secret
}

// Tail returns the end of the log of a service, for errors.
func (l *Landscape) Tail(service string) string {
	content, err := os.ReadFile(l.path("logs", service+".log"))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
