// Package controller watches the objects of a gateway of the Gateway API: its Gateway, TLSRoutes, Services and EndpointSlices. It finds where
// connections lead, and writes the status of the Gateway and of TLSRoutes.
package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/pkg/gateway/routing"
)

// indexService is the index of EndpointSlices by their Service.
const indexService = "service"

// Router finds where connections lead.
type Router struct {
	objects client.Reader
	table   atomic.Pointer[routing.Table]
}

// Ready returns an error until the hosts are known.
func (r *Router) Ready() error {
	if r.table.Load() == nil {
		return fmt.Errorf("the TLSRoutes are not read yet")
	}
	return nil
}

// Find returns the Service and port that a host leads to, and the addresses of its endpoints in the order in which they should be tried. The
// endpoints are those that are known now. The error is forward.ErrNoRoute for a host that no route leads to.
func (r *Router) Find(ctx context.Context, host string) (name string, addresses []string, err error) {
	target, found := r.table.Load().Lookup(host)
	if !found {
		return "", nil, fmt.Errorf("%w: %q", forward.ErrNoRoute, host)
	}
	backend, valid := target.Choose(rand.Int32N)
	if !valid {
		return target.Route.String(), nil, nil
	}
	addresses, err = r.endpoints(ctx, backend)
	return fmt.Sprintf("%s:%d", backend.Service, backend.Port), addresses, err
}

// endpoints returns the addresses of the endpoints of a Service.
func (r *Router) endpoints(ctx context.Context, backend routing.Backend) ([]string, error) {
	service, all := &corev1.Service{}, &discoveryv1.EndpointSliceList{}
	if err := r.objects.Get(ctx, backend.Service, service, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read Service %s: %w", backend.Service, err)
	}
	if err := r.objects.List(ctx, all, client.UnsafeDisableDeepCopy, client.InNamespace(backend.Service.Namespace),
		client.MatchingFields{indexService: backend.Service.Name}); err != nil {
		return nil, fmt.Errorf("read the EndpointSlices of Service %s: %w", backend.Service, err)
	}
	return addressesOf(service, backend.Port, all.Items, rand.Shuffle), nil
}

// addressesOf returns the addresses of the endpoints that are ready, in the order of shuffle. Without any, those that still serve while they end.
func addressesOf(service *corev1.Service, number int32, all []discoveryv1.EndpointSlice, shuffle func(int, func(int, int))) []string {
	at := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == number })
	if at < 0 {
		return nil
	}
	var ready, ending []string
	for i := range all {
		port := portOf(&all[i], service.Spec.Ports[at].Name)
		if port == 0 {
			continue
		}
		for _, endpoint := range all[i].Endpoints {
			if len(endpoint.Addresses) == 0 {
				continue
			}
			// The other addresses of an endpoint are the same.
			address := net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(port)))
			switch conditions := endpoint.Conditions; {
			case ptr.Deref(conditions.Ready, true):
				ready = append(ready, address)
			case ptr.Deref(conditions.Serving, false):
				ending = append(ending, address)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.Sort(ready)
	ready = slices.Compact(ready) // an endpoint that moves between slices is in both for a moment
	shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
	return ready
}

// portOf returns the number of a port in an EndpointSlice; 0 if it does not have it.
func portOf(slice *discoveryv1.EndpointSlice, name string) int32 {
	for _, port := range slice.Ports {
		if ptr.Deref(port.Name, "") == name {
			return ptr.Deref(port.Port, 0)
		}
	}
	return 0
}

// serviceOf returns the Service of an EndpointSlice for the index.
func serviceOf(object client.Object) []string {
	if name := object.GetLabels()[discoveryv1.LabelServiceName]; name != "" {
		return []string{name}
	}
	return nil
}
