package console

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// Garden returns the configuration and a client for the garden, the cluster with Shoots and Seeds. That is the
// cluster that the
// flags select, or else the cluster with the ManagedResources, which serves both kinds if a garden is its own seed.
// isSource is
// set in the latter case. Garden does not check that the cluster serves Shoots.
func (c *Console) Garden() (config *rest.Config, httpClient *http.Client, isSource bool, err error) {
	if config, err = c.clusters.Garden(); err != nil {
		return nil, nil, false, fmt.Errorf("garden: %w", err)
	}
	httpClient, err = newHTTPClient(config)
	return config, httpClient, !c.clusters.HasOwnGarden(), err
}

// controlPlanes selects clusters for objects that flows deploy into a seed. These are in the cluster of the
// ManagedResources.
type controlPlanes struct{ Clusters }

// Target returns the configuration for the cluster with the ManagedResources.
func (c controlPlanes) Target() (*rest.Config, error) { return c.Source() }

// HasOwnTarget returns false, because the target is the source.
func (controlPlanes) HasOwnTarget() bool { return false }
