package console

import (
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/target"
)

// ErrNoTarget is returned if the target cluster is not configured, or without credentials for it. Commands then show what is known
// without it.
var ErrNoTarget = errors.New("the cluster with the objects is not read")

// Target is the cluster with the objects.
type Target struct {
	// Objects reads objects of any kind, their metadata alone where that is enough.
	Objects *target.Objects
	// Dynamic reads and writes whole objects.
	Dynamic dynamic.Interface
	// Events reads Events.
	Events corev1client.EventsGetter
	// Schemas describes kinds.
	Schemas openapi3.Root
	// Mapper knows the names of kinds, short ones too, as kubectl does.
	Mapper func() (meta.RESTMapper, error)
	// Config is how it is reached.
	Config *rest.Config
	// Host is the address of the API server.
	Host string
	// IsSource says that it is the cluster with the ManagedResources, too.
	IsSource bool
}

// Target returns the cluster with the objects.
func (c *Console) Target() (*Target, error) {
	if c.target != nil {
		return c.target, nil
	}
	config, err := c.clusters.Target()
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // warnings about objects that are read or previewed are not useful here
	httpClient, err := boundedClient(config)
	if err != nil {
		return nil, err
	}
	objects, err := target.NewObjects(config, httpClient)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster %s: %w", config.Host, err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster %s: %w", config.Host, err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster %s: %w", config.Host, err)
	}
	c.target = &Target{
		Objects: objects, Dynamic: dynamicClient, Events: core, Schemas: openapi3.NewRoot(discoveryClient.OpenAPIV3()),
		Mapper: c.clusters.TargetMapper, Config: config, Host: config.Host, IsSource: !c.clusters.HasOwnTarget(),
	}
	return c.target, nil
}

// TargetAs returns a client of the target cluster in the name of another user.
func (c *Console) TargetAs(user string, groups []string) (dynamic.Interface, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(target.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return dynamic.NewForConfig(config)
}

// TargetClient returns what reads the HorizontalPodAutoscalers of the target cluster.
func (c *Console) TargetClient() (client.Reader, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), meta.RESTScopeNamespace)
	return client.New(target.Config, client.Options{Scheme: Scheme(), Mapper: mapper})
}
