package console

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// Garden returns how the garden is reached, which has Shoots and Seeds: the cluster that the flags name for it, or else the one with the
// ManagedResources, which has both kinds where a garden is its own seed. IsSource says that it is the latter. That it serves Shoots is not checked.
func (c *Console) Garden() (config *rest.Config, httpClient *http.Client, isSource bool, err error) {
	if config, err = c.clusters.Garden(); err != nil {
		return nil, nil, false, fmt.Errorf("garden: %w", err)
	}
	httpClient, err = boundedClient(config)
	return config, httpClient, !c.clusters.HasOwnGarden(), err
}

// controlPlanes reaches clusters for what flows deploy into a seed: by default, objects are in the cluster of the ManagedResources.
type controlPlanes struct{ Clusters }

// Target returns how the cluster with the ManagedResources is reached.
func (c controlPlanes) Target() (*rest.Config, error) { return c.Source() }

// HasOwnTarget reports that no other cluster is configured.
func (controlPlanes) HasOwnTarget() bool { return false }
