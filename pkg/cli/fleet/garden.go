package fleet

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// cluster is a garden, the cluster with Shoots and Seeds, or the cluster with a Garden.
type cluster struct {
	// Reader reads Shoots, Seeds and Gardens, and their metadata.
	client.Reader
	// host is the address of the API server.
	host string
	// isSource is set if it is also the cluster with the ManagedResources.
	isSource bool
}

// connect returns the cluster with the objects of a kind: the garden of a console, or for Gardens the cluster with the ManagedResources. It does
// not check that the cluster serves the kind.
func connect(c *console.Console, kind string) (*cluster, error) {
	if kind == Garden {
		source, err := c.Source()
		if err != nil {
			return nil, err
		}
		return newCluster(source.Config, source.HTTPClient, true)
	}
	config, httpClient, isSource, err := c.Garden()
	if err != nil {
		return nil, err
	}
	return newCluster(config, httpClient, isSource)
}

func newCluster(config *rest.Config, httpClient *http.Client, isSource bool) (*cluster, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1beta1.AddToScheme(scheme))
	utilruntime.Must(operatorv1alpha1.AddToScheme(scheme))
	reader, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper(), HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster %s: %w", config.Host, err)
	}
	return &cluster{Reader: reader, host: config.Host, isSource: isSource}, nil
}

// versionOf returns the API version of a kind.
func versionOf(kind string) schema.GroupVersion {
	if kind == Garden {
		return operatorv1alpha1.SchemeGroupVersion
	}
	return corev1beta1.SchemeGroupVersion
}

// mapper returns the kinds that are read, so that no discovery is needed.
func mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(versionOf(Shoot).WithKind(Shoot), meta.RESTScopeNamespace)
	mapper.Add(versionOf(Seed).WithKind(Seed), meta.RESTScopeRoot)
	mapper.Add(versionOf(Garden).WithKind(Garden), meta.RESTScopeRoot)
	return mapper
}
