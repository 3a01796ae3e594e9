package app

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/installation"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// addExtensions adds the controllers that install extensions in the seed.
func (g *gardenlet) addExtensions(garden *gardenAccess, facts *seedfacts.Reader) error {
	objects, err := target.NewObjects(g.seedConfig, g.manager.GetHTTPClient())
	if err != nil {
		return err
	}
	// Extensions run elsewhere and cannot read files of this process, so the address must contain their content.
	address := garden.renewer.Connection.Address()
	if err := rest.LoadTLSFiles(address); err != nil {
		return fmt.Errorf("read the CA of the garden for extensions: %w", err)
	}
	seed := installation.Seed{Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects}
	return installation.AddToManager(g.manager, garden, seed, installation.Options{
		SeedName: g.seedName, Namespace: constants.GardenNamespace, Version: version, FeatureGates: g.config.FeatureGates, Clock: g.clock, Facts: facts,
		Garden:          kubeconfig.ClusterOf(address),
		ConcurrentSyncs: *g.config.Controllers.ControllerInstallation.ConcurrentSyncs,
	})
}
