// Package machineimage builds the image of a machine: a small Debian with systemd, containerd, runc and CNI plugins. In a
// privileged container, it is a node of a cluster in a landscape. Its files are also the root file system of a real
// machine.
package machineimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/trellis-k8s/trellis/hack/image/oci"
)

// files are the files of machines. Their paths are relative to the directory files.
//
//go:embed files
var files embed.FS

const (
	// release is the release of Debian. Its systemd is the last one that runs on cgroups v1 without an extra option.
	release = "bookworm"
	// Entrypoint is the entrypoint of the image.
	Entrypoint = "/usr/local/bin/machine-entrypoint"
	// StopSignal makes systemd shut down. SIGTERM would only make it re-execute itself.
	StopSignal = "SIGRTMIN+3"
	// timestamp is the time of all files, so that two builds from the same packages are equal.
	timestamp = "1700000000"
)

// tools are the packages of images with a program that changes nftables, or that a shell starts. packages are those of machines. Without
// /etc/protocols of netbase, nft lists protocols as numbers. kube-proxy then does not recognize its own elements of maps,
// and deletes all of them when the zone of its Node changes. node-problem-detector reads /etc/os-release of base-files.
//
// tests are those of the images that Kubernetes' conformance tests use.
var (
	tools    = []string{"--variant=extract", "--include=nftables,netbase,dash,base-files", "--dpkgopt=path-exclude=/usr/share/*"}
	packages = []string{
		"--variant=minbase", "--aptopt=Apt::Install-Recommends \"false\"",
		"--include=systemd,systemd-sysv,dbus,udev,nftables,iproute2,mount,conntrack,kmod,procps,ca-certificates,ethtool,socat",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
	}
	tests = []string{
		"--variant=minbase", "--aptopt=Apt::Install-Recommends \"false\"",
		"--include=bash-static,bind9-dnsutils,busybox-static,curl,iperf,iproute2,netcat-openbsd,nginx-light,procps,socat",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
	}
)

// masked are units that would change the running machine, or that a node does not need. In containers, machine-entrypoint
// masks more.
var masked = []string{
	"apt-daily.service", "apt-daily-upgrade.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.service",
	"dpkg-db-backup.timer", "e2scrub_reap.service", "systemd-networkd-wait-online.service",
}

// enabled are Debian units that a node needs and that are off by default.
var enabled = []string{"systemd-networkd.service"}

// Tools creates an archive with the root file system with nft and its libraries in a directory, unless it exists.
func Tools(ctx context.Context, directory string) (archive string, err error) {
	return debootstrap(ctx, filepath.Join(directory, "tools.tar"), tools)
}

// Debian creates an archive with the root file system of Debian in a directory, unless it exists.
func Debian(ctx context.Context, directory string) (archive string, err error) {
	return debootstrap(ctx, filepath.Join(directory, "debian.tar"), packages)
}

// Tests creates an archive with the root file system of the images that conformance tests use in a directory, unless it exists.
func Tests(ctx context.Context, directory string) (archive string, err error) {
	return debootstrap(ctx, filepath.Join(directory, "tests.tar"), tests)
}

func debootstrap(ctx context.Context, archive string, options []string) (string, error) {
	sum := sha256.Sum256([]byte(release + strings.Join(options, "\n")))
	stamp, want := archive+".stamp", hex.EncodeToString(sum[:])
	if content, err := os.ReadFile(stamp); err == nil && string(content) == want {
		if _, err := os.Stat(archive); err == nil {
			return archive, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return "", fmt.Errorf("creating %s: %w", archive, err)
	}
	arguments := append(append([]string{"-n", "10", "mmdebstrap", "--mode=root"}, options...), release, archive+".tar")
	command := exec.CommandContext(ctx, "nice", arguments...)
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+timestamp)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("creating %s with mmdebstrap: %w\n%s", archive, err, output.String())
	}
	if err := os.Rename(archive+".tar", archive); err != nil {
		return "", fmt.Errorf("creating %s: %w", archive, err)
	}
	return archive, os.WriteFile(stamp, []byte(want), 0o644) //nolint:gosec // not a secret
}

// Layers returns the layers of the image: Debian, the programs in a directory, and the configuration with that of
// containerd.
func Layers(debian, programs string, containerd []byte) ([]oci.Layer, error) {
	var binaries, configuration []oci.File
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		binaries = append(binaries, oci.File{Path: "/usr/local/bin/" + name, Source: filepath.Join(programs, name)})
	}
	for _, name := range []string{"bridge", "loopback", "host-local", "portmap"} {
		binaries = append(binaries, oci.File{Path: "/opt/cni/bin/" + name, Source: filepath.Join(programs, "cni", name)})
	}
	err := fs.WalkDir(files, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		configuration = append(configuration, place(strings.TrimPrefix(path, "files"), content)...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the files of machines: %w", err)
	}
	for _, unit := range enabled {
		configuration = append(configuration, oci.File{Path: wants + unit, Link: "/lib/systemd/system/" + unit})
	}
	for _, unit := range masked {
		configuration = append(configuration, oci.File{Path: units + unit, Link: "/dev/null"})
	}
	configuration = append(configuration, oci.File{Path: units + "default.target", Link: "/lib/systemd/system/multi-user.target"},
		oci.File{Path: "/etc/containerd/config.toml.in", Content: containerd})
	return []oci.Layer{{Archive: debian}, {Files: binaries}, {Files: configuration}}, nil
}

const (
	units = "/etc/systemd/system/"
	wants = units + "multi-user.target.wants/"
)

// place returns the file at its path. Units are also enabled, and programs are executable.
func place(path string, content []byte) []oci.File {
	file := oci.File{Path: path, Content: content}
	switch name, found := strings.CutPrefix(path, units); {
	case found:
		return []oci.File{file, {Path: wants + name, Link: path}}
	case strings.HasPrefix(path, "/usr/local/bin/"):
		file.Mode = 0o755
	}
	return []oci.File{file}
}
