package landscape

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/trellis-k8s/trellis/hack/image/oci"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/test/landscape/machineimage"
)

// machineImages are the images that nodes of further clusters need.
var machineImages = []string{"kubelet", "kube-proxy", "node-agents", "gardener-node-agent", "metrics-server", "node-problem-detector"}

func (l *Landscape) toolsArchive() string { return l.builder.Path("tools.tar") }

// MachineImages creates the image of machines and the images that run on them, and offers them in the registry if the
// landscape is up. The first call downloads Debian packages.
func (l *Landscape) MachineImages(ctx context.Context) error {
	if err := l.needMmdebstrap(ctx); err != nil {
		return err
	}
	if _, err := machineimage.Tools(ctx, l.builder.Path("")); err != nil {
		return err
	}
	debian, err := machineimage.Debian(ctx, l.builder.Path(""))
	if err != nil {
		return err
	}
	for _, name := range machineImages {
		if err := l.buildProgram(ctx, recipes[name]); err != nil {
			return err
		}
	}
	if err := l.makeImages(slices.Clone(machineImages)); err != nil {
		return err
	}
	if err := l.makeMachine(debian); err != nil {
		return err
	}
	running, err := l.Running()
	if err != nil || !running {
		return err
	}
	return l.announce(ctx)
}

// needMmdebstrap installs mmdebstrap if it is missing and may be installed.
func (l *Landscape) needMmdebstrap(ctx context.Context) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return nil
	}
	if !l.InstallPackages {
		return errors.New("the Debian package mmdebstrap is missing: apt-get install --no-install-recommends mmdebstrap")
	}
	return l.install(ctx, []string{"mmdebstrap"})
}

func (l *Landscape) makeMachine(debian string) error {
	configuration, err := render(l.containerdConfiguration(), map[string]any{
		"Pause": "@PAUSE@", "Registries": "/etc/containerd/certs.d", "Plugins": "/opt/cni/bin", "Networks": "/etc/cni/net.d",
		"Runc": "/usr/local/bin/runc",
	})
	if err != nil {
		return err
	}
	layers, err := machineimage.Layers(debian, l.programs(), configuration)
	if err != nil {
		return fmt.Errorf("creating the image of machines: %w", err)
	}
	store, err := l.store()
	if err != nil {
		return err
	}
	defaults, err := images.Load("")
	if err != nil {
		return err
	}
	image, err := defaults.Find("machine", images.Options{})
	if err != nil {
		return err
	}
	reference, changed, err := store.Write(oci.Spec{
		Reference: untagged(image) + ":" + oci.ContentTag, Layers: layers, Entrypoint: []string{machineimage.Entrypoint},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=landscape"},
		StopSignal: machineimage.StopSignal,
	})
	if err != nil {
		return err
	}
	if changed {
		l.say("  image %s", reference)
	}
	return l.writeTags(images.Vector{tagged("machine", reference)})
}

// ExportMachine writes the root file system of machines as a gzip-compressed archive.
func (l *Landscape) ExportMachine(path string) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	reference, err := l.reference("machine")
	if err != nil {
		return err
	}
	image, err := store.Image(reference)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("exporting the image of machines: %w", err)
	}
	compressed := gzip.NewWriter(f)
	files := mutate.Extract(image)
	_, err = io.Copy(compressed, files)
	if err := errors.Join(err, files.Close(), compressed.Close(), f.Close()); err != nil {
		return fmt.Errorf("exporting the image of machines: %w", err)
	}
	return nil
}
