package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Options are the options of the controller.
type Options struct {
	// Gateway is the name of the Gateway, and Service that of the Service in its namespace whose addresses it has; empty for none.
	Gateway types.NamespacedName
	Service string
	// ListenerPort is the port of the listeners of the Gateway that are served.
	ListenerPort int32
	Metrics      prometheus.Registerer
}

// Scheme returns the scheme with the kinds that the gateway reads.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(discoveryv1.AddToScheme(scheme))
	utilruntime.Must(gatewayv1.Install(scheme))
	return scheme
}

// Cache returns the options of the cache. It has the fields that are used, and of all Gateways only the one that is served.
func Cache(options Options) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&gatewayv1.Gateway{}: {
				Namespaces: map[string]cache.Config{options.Gateway.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", options.Gateway.Name)}},
			},
			&corev1.Service{}: {Transform: cachetransform.Of(func(service *corev1.Service) *corev1.Service {
				ports := make([]corev1.ServicePort, 0, len(service.Spec.Ports))
				for _, port := range service.Spec.Ports {
					ports = append(ports, corev1.ServicePort{Name: cachetransform.Intern(port.Name), Port: port.Port})
				}
				return &corev1.Service{
					ObjectMeta: cachetransform.Meta(service), Status: corev1.ServiceStatus{LoadBalancer: service.Status.LoadBalancer},
					Spec: corev1.ServiceSpec{Type: service.Spec.Type, ClusterIPs: service.Spec.ClusterIPs, Ports: ports},
				}
			})},
			&corev1.Namespace{}: {Transform: cachetransform.Of(func(namespace *corev1.Namespace) *corev1.Namespace {
				reduced := &corev1.Namespace{ObjectMeta: cachetransform.Meta(namespace)}
				reduced.Labels = namespace.Labels
				return reduced
			})},
			&discoveryv1.EndpointSlice{}: {Transform: cachetransform.Of(func(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
				reduced := &discoveryv1.EndpointSlice{ObjectMeta: cachetransform.Meta(slice), Ports: slice.Ports}
				reduced.Labels = cachetransform.KeepKeys(slice.Labels, discoveryv1.LabelServiceName)
				for _, endpoint := range slice.Endpoints {
					reduced.Endpoints = append(reduced.Endpoints, discoveryv1.Endpoint{Addresses: endpoint.Addresses, Conditions: endpoint.Conditions})
				}
				return reduced
			})},
		},
	}
}

// AddToManager adds the controller to a manager, whose cache has the options of Cache. All replicas run it.
func AddToManager(ctx context.Context, mgr manager.Manager, options Options) (*Router, error) {
	hosts := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "gateway", Name: "hosts", Help: "Hosts that lead to a Service."})
	if err := options.Metrics.Register(hosts); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	router := &Router{objects: mgr.GetCache()}
	if err := mgr.GetCache().IndexField(ctx, &discoveryv1.EndpointSlice{}, indexService, serviceOf); err != nil {
		return nil, fmt.Errorf("index EndpointSlices: %w", err)
	}
	if err := mgr.GetCache().IndexField(ctx, &gatewayv1.TLSRoute{}, indexService, servicesOf); err != nil {
		return nil, fmt.Errorf("index TLSRoutes: %w", err)
	}
	woken := watches.NewNotifier(1)
	work, err := controller.New("gateway", mgr, controller.Options{
		Reconciler: &reconciler{
			options: options, objects: mgr.GetCache(), status: mgr.GetClient(), router: router, clock: clock.RealClock{}, hosts: hosts, wake: woken.Wake,
		},
		NeedLeaderElection: ptr.To(false), SkipNameValidation: ptr.To(true),
	})
	if err != nil {
		return nil, err
	}
	if err := work.Watch(woken.Source(watches.To(statuses))); err != nil {
		return nil, err
	}
	return router, watch(ctx, mgr.GetCache(), work, options)
}

// watch makes the controller decide again about the routes for which something changes on which a decision depends. It does not depend on
// EndpointSlices.
func watch(ctx context.Context, in cache.Cache, work controller.Controller, options Options) error {
	for _, changed := range append(gatewaySources(in),
		watches.OnChange(in, &gatewayv1.TLSRoute{}, differ[*gatewayv1.TLSRoute], func(_ context.Context, route *gatewayv1.TLSRoute) []types.NamespacedName {
			return []types.NamespacedName{client.ObjectKeyFromObject(route)}
		}),
		watches.OnChange(in, &corev1.Service{}, func(before, after *corev1.Service) bool {
			return !slices.Equal(before.Spec.Ports, after.Spec.Ports) || !slices.Equal(dnsvalues.AddressesOf(before), dnsvalues.AddressesOf(after))
		}, func(ctx context.Context, service *corev1.Service) []types.NamespacedName {
			affected := routesOf(ctx, in, client.InNamespace(service.Namespace), client.MatchingFields{indexService: service.Name})
			if service.Namespace == options.Gateway.Namespace && service.Name == options.Service {
				affected = append(affected, statuses.NamespacedName) // the addresses of the Gateway
			}
			return affected
		}),
		watches.OnChange(in, &corev1.Namespace{}, func(before, after *corev1.Namespace) bool {
			return !maps.Equal(before.Labels, after.Labels)
		}, func(ctx context.Context, namespace *corev1.Namespace) []types.NamespacedName {
			return routesOf(ctx, in, client.InNamespace(namespace.Name))
		}),
	) {
		if err := work.Watch(changed); err != nil {
			return err
		}
	}
	// The manager starts the cache of a kind when it is first used.
	_, err := in.GetInformer(ctx, &discoveryv1.EndpointSlice{}, cache.BlockUntilSynced(false))
	return err
}

// differ regards each update as a change.
func differ[T client.Object](T, T) bool { return true }

// gatewaySources make the controller decide about all routes when the specification of the Gateway or its class changes. When only a status
// does, it is compared with the wanted one.
func gatewaySources(in cache.Cache) []source.Source {
	return []source.Source{
		watches.OnChange(in, &gatewayv1.Gateway{}, specDiffers[*gatewayv1.Gateway], only[*gatewayv1.Gateway](everything)),
		watches.OnChange(in, &gatewayv1.Gateway{}, differ[*gatewayv1.Gateway], only[*gatewayv1.Gateway](statuses)),
		watches.OnChange(in, &gatewayv1.GatewayClass{}, specDiffers[*gatewayv1.GatewayClass], only[*gatewayv1.GatewayClass](everything)),
		watches.OnChange(in, &gatewayv1.GatewayClass{}, differ[*gatewayv1.GatewayClass], only[*gatewayv1.GatewayClass](statuses)),
	}
}

// specDiffers reports whether more than the status and labels of an object have changed.
func specDiffers[T client.Object](before, after T) bool {
	return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() || !before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp())
}

// only requests the same work for all objects.
func only[T client.Object](request reconcile.Request) func(context.Context, T) []types.NamespacedName {
	return func(context.Context, T) []types.NamespacedName { return []types.NamespacedName{request.NamespacedName} }
}

// routesOf returns the names of the routes that options select. The cache has them, or notifies of them later.
func routesOf(ctx context.Context, in client.Reader, options ...client.ListOption) []types.NamespacedName {
	list := &gatewayv1.TLSRouteList{}
	if in.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...) != nil {
		return nil
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names
}

// servicesOf returns the names of the backends of a route for the index.
func servicesOf(object client.Object) []string {
	route, ok := object.(*gatewayv1.TLSRoute)
	if !ok {
		return nil
	}
	var names []string
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			names = append(names, string(ref.Name))
		}
	}
	return names
}
