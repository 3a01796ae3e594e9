package landscape

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/trellis-k8s/trellis/test/landscape/build"
)

const (
	// distributionPrograms is the directory, below that of the built programs, in which programs of the distribution replace
	// some of them. It is a separate directory so that landscapes of both kinds can run next to each other.
	distributionPrograms = "distribution"
	// distributionFiles is the directory that the packages of the distribution are unpacked to.
	distributionFiles = ".distribution"
)

// distributionPackages are the Debian packages, each with the files of its programs by the names of the programs.
var distributionPackages = map[string]map[string]string{
	"containerd": {"containerd": "usr/bin/containerd", "containerd-shim-runc-v2": "usr/bin/containerd-shim-runc-v2", "ctr": "usr/bin/ctr"},
	"runc":       {"runc": "usr/sbin/runc"},
	"containernetworking-plugins": {
		"cni/bridge": "usr/lib/cni/bridge", "cni/loopback": "usr/lib/cni/loopback", "cni/host-local": "usr/lib/cni/host-local",
		"cni/portmap": "usr/lib/cni/portmap",
	},
}

// programs is the directory with the programs that the landscape runs.
func (l *Landscape) programs() string {
	if l.Distribution {
		return l.builder.Path(distributionPrograms)
	}
	return l.builder.Path("")
}

// containerdConfiguration returns the name of the template. Debian 12 has containerd 1.6, whose configuration has another
// format.
func (l *Landscape) containerdConfiguration() string {
	if l.Distribution {
		return "containerd-v1.toml"
	}
	return "containerd.toml"
}

// takeDistribution fills the directory of programs with those of the distribution, and with built ones that the
// distribution lacks.
func (l *Landscape) takeDistribution(ctx context.Context) error {
	files := l.builder.Path(distributionFiles)
	if err := l.unpackDistribution(ctx, files); err != nil {
		return err
	}
	programs := map[string]string{}
	for _, p := range append(build.Upstream(), build.Own()...) {
		programs[p.Name] = l.builder.Path(p.Name)
	}
	for _, contents := range distributionPackages {
		for program, file := range contents {
			programs[program] = filepath.Join(files, file)
		}
	}
	for name, source := range programs {
		path := filepath.Join(l.programs(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("linking the program %s: %w", name, err)
		}
		if err := build.ReplaceLink(source, path); err != nil {
			return fmt.Errorf("linking the program %s: %w", name, err)
		}
	}
	return nil
}

// unpackDistribution downloads the Debian packages and unpacks them without installing them. It does nothing if they are
// already unpacked.
func (l *Landscape) unpackDistribution(ctx context.Context, directory string) error {
	if _, err := os.Stat(directory); err == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(distributionPackages))
	l.say("Downloading the Debian packages %v.", names)
	unfinished := directory + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("unpacking Debian packages: %w", err)
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return fmt.Errorf("unpacking Debian packages: %w", err)
	}
	const script = `set -e; apt-get update -qq; apt-get download -qq "$@"; for p in *.deb; do dpkg-deb -x "$p" .; done; rm *.deb`
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, names...)...) //nolint:gosec // the arguments are constants
	command.Dir = unfinished
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking the Debian packages %v: %w\n%s", names, err, output)
	}
	return os.Rename(unfinished, directory)
}
