package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// cluster is a garden, the cluster with Shoots and Seeds.
type cluster struct {
	// Reader reads Shoots and Seeds, and their metadata.
	client.Reader
	// host is the address of the API server.
	host string
	// isSource is set if it is also the cluster with the ManagedResources.
	isSource bool
}

// connect returns the garden of a console. It does not check that the cluster serves Shoots.
func connect(c *console.Console) (*cluster, error) {
	config, httpClient, isSource, err := c.Garden()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1beta1.AddToScheme(scheme))
	reader, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper(), HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the garden %s: %w", config.Host, err)
	}
	return &cluster{Reader: reader, host: config.Host, isSource: isSource}, nil
}

// mapper returns the kinds that are read from the garden, so that no discovery is needed.
func mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Shoot"), meta.RESTScopeNamespace)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Seed"), meta.RESTScopeRoot)
	return mapper
}
