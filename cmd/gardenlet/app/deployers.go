package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/gardenlet/managedseed"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/selfupgrade"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// addDeployers adds the controllers that deploy gardenlets: those of ManagedSeeds, and this one.
func (g *gardenlet) addDeployers(garden *gardenAccess, facts *seedfacts.Reader) error {
	direct, err := newDirectClient(garden)
	if err != nil {
		return err
	}
	// Other gardenlets cannot read files of this process, so the address must contain their content.
	address := garden.renewer.Connection.Address()
	if err := rest.LoadTLSFiles(address); err != nil {
		return fmt.Errorf("read the CA of the garden for gardenlets: %w", err)
	}
	own, err := ownImages()
	if err != nil {
		return err
	}
	recorder := newRecorder(garden)
	managed := managedseed.Options{
		SeedName: g.seedName, Version: version, Config: g.config, Garden: kubeconfig.ClusterOf(address), Recorder: recorder, Clock: g.clock,
		Image: gardenletdeployer.Reference(own.gardenlet, version), ImageOverwrites: own.overwrites, ComponentImageOverwrites: own.components,
	}
	issuer := gardenletdeployer.Issuer{Garden: direct, Cluster: managed.Garden, FieldManager: component, Random: rand.Reader, Clock: g.clock}
	upgrade := selfupgrade.Options{
		SeedName: g.seedName, Version: version, Config: g.config, Recorder: recorder, Clock: g.clock, Issuer: issuer,
		KubeVersion: func(ctx context.Context) (string, error) {
			found, err := facts.Get(ctx)
			return found.Version, err
		},
	}
	return errors.Join(managedseed.AddToManager(g.manager, garden, direct, managed), selfupgrade.AddToManager(g.manager, garden, upgrade))
}

// imagesOfProcess are the image of this program, and the files that overwrite images.
type imagesOfProcess struct{ gardenlet, overwrites, components string }

func ownImages() (imagesOfProcess, error) {
	var own imagesOfProcess
	vector, err := images.FromEnvironment()
	if err != nil {
		return own, err
	}
	image, err := vector.Find(component, images.Options{})
	if err != nil {
		return own, err
	}
	own.gardenlet = image.Reference
	for variable, text := range map[string]*string{images.OverwriteVariable: &own.overwrites, images.ComponentsOverwriteVariable: &own.components} {
		path := os.Getenv(variable)
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path) //nolint:gosec // the images were read from this file before
		if err != nil {
			return own, fmt.Errorf("read the overwrites of images of %s: %w", variable, err)
		}
		*text = string(content)
	}
	return own, nil
}
