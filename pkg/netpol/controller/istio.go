package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// Kinds tells which kinds the target cluster has.
type Kinds interface {
	// Serves asks the API server whether it serves a kind. An error means that it could not be found out.
	Serves(gvk schema.GroupVersionKind) (bool, error)
}

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	istioGroup  = schema.GroupVersion{Group: "networking.istio.io", Version: "v1beta1"}
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// Indexes of VirtualServices.
const indexDestination, indexGateway = "destination", "gateway"

// istio watches VirtualServices, Gateways and the Pods of gateways. The first two are watched while their CustomResourceDefinitions
// are there, the Pods of a Gateway while a Service is exposed by it. It is safe for concurrent use.
type istio struct {
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	kinds      Kinds
	namespaces []string

	// ctx is that of the controller, for watches that begin later.
	ctx     context.Context
	enqueue func(...types.NamespacedName)
	// withPolicies returns the Services that have policies for gateways.
	withPolicies func(context.Context) []types.NamespacedName

	virtualServices, gateways *kindWatch

	mu sync.Mutex
	// pods are the watches of Pods of gateways by their selectors.
	pods map[string]*podWatch
}

func newIstio(dynamicClient dynamic.Interface, metadataClient metadata.Interface, kinds Kinds, namespaces []string) *istio {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	i := &istio{dynamic: dynamicClient, metadata: metadataClient, kinds: kinds, namespaces: namespaces, pods: map[string]*podWatch{}}
	i.virtualServices = &kindWatch{
		istio: i, resource: "virtualservices", kind: "VirtualService", affected: ofVirtualService,
		reduce: func(object *unstructured.Unstructured) any { return netpol.ReadVirtualService(object) },
		indexers: toolscache.Indexers{
			indexDestination: func(object any) ([]string, error) { return names(ofVirtualService(object)), nil },
			indexGateway:     gatewaysOf,
		},
	}
	i.gateways = &kindWatch{
		istio: i, resource: "gateways", kind: "Gateway", affected: i.ofGateway,
		reduce: func(object *unstructured.Unstructured) any {
			return &gateway{ObjectMeta: essentials(object), selector: netpol.ReadSelector(object)}
		},
		indexers: toolscache.Indexers{},
	}
	return i
}

// gateway is what is kept of a Gateway.
type gateway struct {
	metav1.ObjectMeta
	selector map[string]string
}

// start begins to watch, and returns at once.
func (i *istio) start(ctx context.Context, enqueue func(...types.NamespacedName), withPolicies func(context.Context) []types.NamespacedName) error {
	i.ctx, i.enqueue, i.withPolicies = ctx, enqueue, withPolicies
	for _, kind := range []*kindWatch{i.virtualServices, i.gateways} {
		if err := kind.watchDefinition(ctx); err != nil {
			return err
		}
	}
	return nil
}

// announce has all Services looked at that have to do with Istio, once it is known what there is.
func (i *istio) announce() {
	if !i.virtualServices.known() || !i.gateways.known() {
		return
	}
	for _, object := range i.virtualServices.list() {
		i.enqueue(ofVirtualService(object)...)
	}
	i.enqueue(i.withPolicies(i.ctx)...)
}

// of returns what there is for a Service, by name. Unknown is set while that cannot be told, of which an announcement follows.
func (i *istio) of(service types.NamespacedName) (virtualServices []*netpol.VirtualService, gateways map[types.NamespacedName]netpol.Gateway, unknown bool) {
	if !i.virtualServices.known() || !i.gateways.known() {
		return nil, nil, true
	}
	gateways = map[types.NamespacedName]netpol.Gateway{}
	var selectors []string
	for _, object := range i.virtualServices.byIndex(indexDestination, service.String()) {
		virtualService, ok := object.(*netpol.VirtualService)
		if !ok {
			continue
		}
		virtualServices = append(virtualServices, virtualService)
		for _, name := range virtualService.Gateways {
			if found := i.gateways.get(name); found != nil {
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

// ofVirtualService returns the Services that a VirtualService leads to.
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
	for _, virtualService := range i.virtualServices.byIndex(indexGateway, types.NamespacedName{Namespace: one.Namespace, Name: one.Name}.String()) {
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

// servedWithin are the delays in which the API server gets to serve a kind that was just defined.
var servedWithin = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8}

// newDefinitionInformer watches one CustomResourceDefinition.
func (i *istio) newDefinitionInformer(name string) toolscache.SharedIndexInformer {
	return metadatainformer.NewFilteredMetadataInformer(i.metadata, definitions, metav1.NamespaceAll, 0, toolscache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}).Informer()
}

func (i *istio) newInformer(resource, namespace string, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(i.dynamic, istioGroup.WithResource(resource), namespace, 0, indexers, nil).Informer()
}

// waitUntilServed tells whether the API server serves a kind that is defined.
func (i *istio) waitUntilServed(ctx context.Context, kind string) bool {
	err := wait.ExponentialBackoffWithContext(ctx, servedWithin, func(context.Context) (bool, error) {
		served, err := i.kinds.Serves(istioGroup.WithKind(kind))
		return served && err == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "The kind is defined, but not served in this version: policies for gateways stay as they are",
			"kind", istioGroup.WithKind(kind).String())
	}
	return err == nil
}
