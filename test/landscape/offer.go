package landscape

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/trellis-k8s/trellis/hack/image/oci"
	"github.com/trellis-k8s/trellis/test/landscape/build"
	"github.com/trellis-k8s/trellis/test/landscape/conformance"
	"github.com/trellis-k8s/trellis/test/landscape/machineimage"
)

// RegistryName is the registry in the names of all images that the landscape serves.
const RegistryName = registryName

// Offer creates images, whose references must begin with [RegistryName], and offers them in the registry of the running landscape to the
// nodes of all its clusters. Images that have not changed are only offered.
func (l *Landscape) Offer(ctx context.Context, specs []oci.Spec) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	for _, spec := range specs {
		reference, changed, err := store.Write(spec)
		if err != nil {
			return err
		}
		if changed {
			l.say("  image %s", reference)
		}
	}
	return l.announce(ctx)
}

// ConformanceSources returns the files of images for conformance tests. programs is the directory of the programs of
// [build.Conformance]. The first call downloads Debian packages.
func (l *Landscape) ConformanceSources(ctx context.Context, programs string) (conformance.Sources, error) {
	s := conformance.Sources{
		Programs: programs, Pause: l.builder.Path("pause"), Busybox: filepath.Join(programs, "busybox"), Shell: filepath.Join(programs, "bash"),
		Etcd: filepath.Join(l.Root, "bin", "etcd"),
	}
	if err := l.needMmdebstrap(ctx); err != nil {
		return s, err
	}
	var err error
	if s.Debian, err = machineimage.Tests(ctx, programs); err != nil {
		return s, err
	}
	if err := conformance.Shell(s.Debian, s.Shell); err != nil {
		return s, err
	}
	if s.Applets, err = conformance.Busybox(ctx, s.Debian, s.Busybox); err != nil {
		return s, err
	}
	command := exec.CommandContext(ctx, l.builder.Go, "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes") //nolint:gosec // the Go tool of the builder
	command.Dir = filepath.Join(l.Root, build.Conformance()[0].Module)
	directory, err := command.Output()
	if err != nil {
		return s, fmt.Errorf("finding the module k8s.io/kubernetes: %w", err)
	}
	s.Module = strings.TrimSpace(string(directory))
	return s, nil
}
