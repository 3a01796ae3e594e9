package console

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Garden is the cluster that has Shoots and Seeds.
type Garden struct {
	// Reader reads Shoots and Seeds, and their metadata.
	client.Reader
	// Host is the address of the API server.
	Host string
	// IsSource says that it is the cluster with the ManagedResources, too.
	IsSource bool
}

// Garden returns the garden: the cluster that the flags name for it, or else the one with the ManagedResources, which has both kinds where a garden
// is its own seed. That it serves Shoots is not checked.
func (c *Console) Garden() (*Garden, error) {
	if c.garden != nil {
		return c.garden, nil
	}
	config, err := c.clusters.Garden()
	if err != nil {
		return nil, fmt.Errorf("garden: %w", err)
	}
	httpClient, err := boundedClient(config)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1beta1.AddToScheme(scheme))
	reader, err := client.New(config, client.Options{Scheme: scheme, Mapper: gardenMapper(), HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden %s: %w", config.Host, err)
	}
	c.garden = &Garden{Reader: reader, Host: config.Host, IsSource: !c.clusters.HasOwnGarden()}
	return c.garden, nil
}

// gardenMapper knows the kinds that are read from the garden, so that nothing has to be discovered.
func gardenMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Shoot"), meta.RESTScopeNamespace)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Seed"), meta.RESTScopeRoot)
	return mapper
}

// controlPlanes reaches clusters for what flows deploy into a seed: by default, objects are in the cluster of the ManagedResources.
type controlPlanes struct{ Clusters }

// Target returns how the cluster with the ManagedResources is reached.
func (c controlPlanes) Target() (*rest.Config, error) { return c.Source() }

// HasOwnTarget reports that no other cluster is configured.
func (controlPlanes) HasOwnTarget() bool { return false }
