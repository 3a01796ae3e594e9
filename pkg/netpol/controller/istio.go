package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

var (
	istioGroup  = schema.GroupVersion{Group: "networking.istio.io", Version: "v1beta1"}
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// Indexes of VirtualServices.
const indexDestination, indexGateway = "destination", "gateway"

// istio watches VirtualServices, Gateways and the Pods of gateways. VirtualServices and Gateways are watched while
// their CustomResourceDefinitions exist, and the Pods of a Gateway while it exposes a Service. It is safe for
// concurrent use.
type istio struct {
	metadata   metadata.Interface
	namespaces []string

	// ctx is the context of the controller, for watches that start later.
	ctx     context.Context
	enqueue func(...types.NamespacedName)
	// withPolicies returns the Services that have policies for gateways.
	withPolicies func(context.Context) []types.NamespacedName

	virtualServices, gateways *crdwatch.Watch

	mu sync.Mutex
	// pods are the watches of Pods of gateways, by selector.
	pods map[string]*podWatch
}

func newIstio(dynamicClient dynamic.Interface, metadataClient metadata.Interface, kinds crdwatch.Kinds, namespaces []string) *istio {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	i := &istio{metadata: metadataClient, namespaces: namespaces, pods: map[string]*podWatch{}}
	options := crdwatch.Options{
		Dynamic: dynamicClient, Metadata: metadataClient, Kinds: kinds, Namespaces: namespaces, OnKnown: i.announce,
		Affected: "policies for gateways",
	}
	options.Resource, options.Kind = istioGroup.WithResource("virtualservices"), "VirtualService"
	options.Reduce = func(object *unstructured.Unstructured) any { return netpol.ReadVirtualService(object) }
	options.OnEvent = func(object any) { i.enqueue(ofVirtualService(object)...) }
	options.Indexers = toolscache.Indexers{
		indexDestination: func(object any) ([]string, error) { return names(ofVirtualService(object)), nil },
		indexGateway:     gatewaysOf,
	}
	i.virtualServices = crdwatch.New(options)
	options.Resource, options.Kind = istioGroup.WithResource("gateways"), "Gateway"
	options.Reduce = func(object *unstructured.Unstructured) any {
		return &gateway{ObjectMeta: cachetransform.Meta(object), selector: netpol.ReadSelector(object)}
	}
	options.OnEvent = func(object any) { i.enqueue(i.ofGateway(object)...) }
	options.Indexers = toolscache.Indexers{}
	i.gateways = crdwatch.New(options)
	return i
}

// gateway is the cached form of a Gateway.
type gateway struct {
	metav1.ObjectMeta
	selector map[string]string
}

// start starts the watches. It does not block.
func (i *istio) start(
	ctx context.Context, enqueue func(...types.NamespacedName), withPolicies func(context.Context) []types.NamespacedName,
) error {
	i.ctx, i.enqueue, i.withPolicies = ctx, enqueue, withPolicies
	for _, kind := range []*crdwatch.Watch{i.virtualServices, i.gateways} {
		if err := kind.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// announce enqueues all Services that are related to Istio once all Istio objects are known.
func (i *istio) announce() {
	if !i.virtualServices.Known() || !i.gateways.Known() {
		return
	}
	for _, object := range i.virtualServices.List() {
		i.enqueue(ofVirtualService(object)...)
	}
	i.enqueue(i.withPolicies(i.ctx)...)
}

// of returns the Istio objects for a Service, by name. Unknown is set while they are not known; the Service is enqueued
// again later.
func (i *istio) of(service types.NamespacedName) (
	virtualServices []*netpol.VirtualService, gateways map[types.NamespacedName]netpol.Gateway, unknown bool,
) {
	if !i.virtualServices.Known() || !i.gateways.Known() {
		return nil, nil, true
	}
	gateways = map[types.NamespacedName]netpol.Gateway{}
	var selectors []string
	for _, object := range i.virtualServices.ByIndex(indexDestination, service.String()) {
		virtualService, ok := object.(*netpol.VirtualService)
		if !ok {
			continue
		}
		virtualServices = append(virtualServices, virtualService)
		for _, name := range virtualService.Gateways {
			if found, isGateway := i.gateways.Get(name).(*gateway); isGateway {
				gateways[name] = netpol.Gateway{Selector: found.selector}
				if len(found.selector) > 0 {
					selectors = append(selectors, labels.Set(found.selector).String())
				}
			}
		}
	}
	watches := i.use(service, selectors)
	for name, one := range gateways {
		if len(one.Selector) == 0 {
			continue
		}
		namespaces, known := watches[labels.Set(one.Selector).String()].found()
		one.Namespaces, unknown = namespaces, unknown || !known
		gateways[name] = one
	}
	return virtualServices, gateways, unknown
}

// ofVirtualService returns the Services that a VirtualService routes to.
func ofVirtualService(object any) []types.NamespacedName {
	virtualService, ok := object.(*netpol.VirtualService)
	if !ok {
		return nil
	}
	var services []types.NamespacedName
	for _, destination := range virtualService.Destinations {
		services = append(services, types.NamespacedName{Namespace: virtualService.Namespace, Name: destination.Service})
	}
	return slices.Compact(services) // they are sorted
}

// ofGateway returns the Services that a Gateway exposes.
func (i *istio) ofGateway(object any) []types.NamespacedName {
	one, ok := object.(*gateway)
	if !ok {
		return nil
	}
	var services []types.NamespacedName
	name := types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
	for _, virtualService := range i.virtualServices.ByIndex(indexGateway, name.String()) {
		services = append(services, ofVirtualService(virtualService)...)
	}
	return services
}

func gatewaysOf(object any) ([]string, error) {
	virtualService, ok := object.(*netpol.VirtualService)
	if !ok {
		return nil, nil
	}
	return names(virtualService.Gateways), nil
}

func names(keys []types.NamespacedName) []string {
	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, key.String())
	}
	return texts
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
