package landscape

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/trellis-k8s/trellis/hack/image/oci"
	"github.com/trellis-k8s/trellis/pkg/images"
)

// versioned are the images whose tag is the Kubernetes version of the cluster that they serve. `make controlplane-older`
// builds their programs.
var versioned = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// PushOlder creates the images of another version of Kubernetes, such as v1.36.0, from the programs that `make
// controlplane-older` has built, and offers them in the registry.
func (l *Landscape) PushOlder(ctx context.Context, version string) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	defaults, err := images.Load("")
	if err != nil {
		return err
	}
	for _, name := range versioned {
		image, err := defaults.Find(name, images.Options{RuntimeVersion: version, TargetVersion: version})
		if err != nil {
			return err
		}
		older := recipes[name]
		older.program = filepath.Join("kubernetes", version, name)
		spec := oci.Spec{Reference: image.Reference, Entrypoint: []string{older.entrypoint()}, User: older.user}
		if spec.Layers, err = l.layers(older); err != nil {
			return fmt.Errorf("%w: build it with `make controlplane-older VERSION=%s`", err, version)
		}
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
