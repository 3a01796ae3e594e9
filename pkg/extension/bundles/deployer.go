// Package bundles contains actuators that deploy ManagedResources. An extension computes a plan, and the health of its
// bundles determines the last operation.
package bundles

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// LabelActuator is the label of ManagedResources with the name of the actuator that emits them.
const LabelActuator = "extensions.gardener.cloud/actuator"

// Options are the options of a [Deployer].
type Options struct {
	// Name of the extension, such as "provider-local". It is the name of its flow and its field manager, and must never change.
	Name string
	// Version of the program.
	Version string
	// Clock defaults to the real clock if it is nil.
	Clock clock.PassiveClock
	// Namespace is that of the extension, if it has ManagedResources there: see [Outside]. Their manifests are deleted with an object.
	Namespace string
}

// Deployer emits the plans of all actuators of a manager.
type Deployer struct {
	options  Options
	emitter  *flow.Emitter
	cache    cache.Cache
	client   client.Client
	uncached client.Reader
}

// NewDeployer returns the deployer of a manager. Call it once, before the manager starts. It has its own cache of this
// extension's ManagedResources and the metadata of their Secrets. The process needs permission to get, list, watch,
// create, patch and delete ManagedResources, and to get, list, watch and create Secrets.
func NewDeployer(ctx context.Context, mgr manager.Manager, options Options) (*Deployer, error) {
	if options.Name == "" {
		return nil, errors.New("the options of the deployer have no name")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	byObject := flow.CacheOptions(options.Name)
	for object, of := range byObject {
		switch object.(type) {
		case *resourcesv1alpha1.ManagedResource, *corev1.Secret:
			of.Label = labels.SelectorFromSet(labels.Set{flow.LabelFlow: options.Name})
			byObject[object] = of
		default:
			delete(byObject, object) // CustomResourceDefinitions are not needed
		}
	}
	own, err := watches.NewCache(mgr, "ManagedResources", cache.Options{ByObject: byObject})
	if err != nil {
		return nil, err
	}
	reader, err := flow.IndexOwners(ctx, own)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(watches.InEveryReplica(own)); err != nil {
		return nil, fmt.Errorf("add the cache of ManagedResources: %w", err)
	}
	d := &Deployer{options: options, cache: own, client: mgr.GetClient(), uncached: mgr.GetAPIReader()}
	d.emitter = &flow.Emitter{
		Reader: reader, Uncached: d.uncached, Writer: d.client, FieldManager: options.Name, Clock: options.Clock,
		Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: options.Version},
	}
	return d, nil
}

// Reader reads the ManagedResources of this extension from a cache. Their status has no checksums, and must not be written back.
func (d *Deployer) Reader() client.Reader { return d.cache }

// source maps the ManagedResources of an actuator to its objects.
func (d *Deployer) source(actuator string) source.Source {
	of := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[LabelActuator] == actuator })
	return source.Kind[client.Object](d.cache, &resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), of)
}
