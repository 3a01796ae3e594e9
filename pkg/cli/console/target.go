package console

import (
	"errors"
	"fmt"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// ErrNoTarget is returned if the target cluster is not configured, or if there are no credentials for it. Commands
// then show
// what they know without it.
var ErrNoTarget = errors.New("the cluster with the objects is not read")

// Target is the cluster with the objects.
type Target struct {
	// Objects reads objects of any kind, or only their metadata.
	Objects *target.Objects
	// Dynamic reads and writes whole objects.
	Dynamic dynamic.Interface
	// Events reads Events.
	Events corev1client.EventsGetter
	// Schemas returns the OpenAPI schemas of kinds.
	Schemas openapi3.Root
	// Mapper returns the kinds and their short names, as kubectl does.
	Mapper func() (meta.RESTMapper, error)
	// Config is the configuration for connecting to the cluster.
	Config *rest.Config
	// Host is the address of the API server.
	Host string
	// IsSource is set if it is also the cluster with the ManagedResources.
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
	config.WarningHandler = rest.NoWarnings{} // warnings about objects that are only read or previewed are not useful
	httpClient, err := newHTTPClient(config)
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

// TargetOf returns the cluster with the objects of a ManagedResource. This is the target cluster, unless OfFlow
// returned the console.
func (c *Console) TargetOf(mr *resourcesv1alpha1.ManagedResource) (*Target, error) {
	if c.placed == nil {
		return c.Target()
	}
	return c.placed(mr)
}

// errShootNotNamed is returned for objects in the cluster of a Shoot if the flags do not name that cluster.
var errShootNotNamed = fmt.Errorf("%w: name the cluster of the Shoot, or of the virtual garden, with --target-kubeconfig or --target-context", ErrNoTarget)

// OfFlow returns a console for the ManagedResources of a flow in a seed. The objects of those with a class are in the
// seed. If
// inShoot is set, the resource-manager of a Shoot applies those of the default class in the cluster of the Shoot.
// That is the
// target cluster if flags name one.
func (c *Console) OfFlow(inShoot bool) *Console {
	seed, flow := ptr.To(*c), ptr.To(*c)
	if c.clusters.HasOwnTarget() {
		seed.target = nil
	}
	seed.clusters = controlPlanes{c.clusters}
	inSeed, own := sync.OnceValues(seed.Target), sync.OnceValues(c.Target)
	flow.placed = func(mr *resourcesv1alpha1.ManagedResource) (*Target, error) {
		switch {
		case !inShoot || mr.Spec.Class != nil && *mr.Spec.Class != "":
			return inSeed()
		case !c.clusters.HasOwnTarget():
			return nil, errShootNotNamed
		}
		return own()
	}
	return flow
}

// TargetAs returns a client of the target cluster that impersonates a user.
func (c *Console) TargetAs(user string, groups []string) (dynamic.Interface, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(target.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return dynamic.NewForConfig(config)
}

// TargetClient returns a client that reads HorizontalPodAutoscalers in the target cluster.
func (c *Console) TargetClient() (client.Reader, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), meta.RESTScopeNamespace)
	return client.New(target.Config, client.Options{Scheme: Scheme(), Mapper: mapper})
}
