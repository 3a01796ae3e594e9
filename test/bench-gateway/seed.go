package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	gatewaycomponent "github.com/trellis-k8s/trellis/pkg/component/gateway"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
)

const (
	// namespace and service are those of the gateway.
	namespace, service = "istio-ingress", exposure.GatewayApp
	// writers is the number of concurrent requests for the objects of Shoots.
	writers = 16
	// statusTimeout is how long the gateway may take to write the status of all routes: it sends 50 requests per second.
	statusTimeout = 5 * time.Minute
	statusPoll    = time.Second
)

// seed is the seed cluster.
type seed struct {
	client client.Client
	// target is the address of the server behind all routes.
	target string
	shoots int
}

func scheme() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(all))
	utilruntime.Must(gatewayv1.Install(all))
	return all
}

func gateways() []exposure.Gateway {
	return []exposure.Gateway{{Namespace: namespace, Service: service, Labels: map[string]string{exposure.LabelApp: service}}}
}

// createGateway creates the objects of the gateway, as gardenlet does.
func (s *seed) createGateway(ctx context.Context) error {
	objects, err := gatewaycomponent.Objects(gatewaycomponent.Values{Image: "gateway", Gateways: gateways()})
	if err != nil {
		return err
	}
	for _, first := range []bool{true, false} {
		for _, object := range objects {
			if _, is := object.(*corev1.Namespace); is != first {
				continue
			}
			if err := s.client.Create(ctx, object); err != nil {
				return fmt.Errorf("create the objects of the gateway: %w", err)
			}
		}
	}
	return nil
}

// name, host and hostOf return the names of the control plane and the API server of a Shoot.
func name(index int) string { return fmt.Sprintf("s%d", index) }

func host(index int) string { return hostOf(name(index)) }

func hostOf(name string) string { return "api." + name + ".dev.internal.example.org" }

func namespaceOf(name string) string { return "shoot--dev--" + name }

// grow creates the objects of more Shoots, until there are as many.
func (s *seed) grow(ctx context.Context, shoots int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for ; s.shoots < shoots; s.shoots++ {
		one := name(s.shoots)
		group.Go(func() error { return s.createShoot(ctx, one) })
	}
	return group.Wait()
}

// createShoot creates what the gateway reads of a Shoot.
func (s *seed) createShoot(ctx context.Context, name string) error {
	address, text, err := net.SplitHostPort(s.target)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return err
	}
	route, err := s.route(name, hostOf(name))
	if err != nil {
		return err
	}
	own := metav1.ObjectMeta{
		Namespace: namespaceOf(name), Name: kubeapiserver.Name, Labels: map[string]string{discoveryv1.LabelServiceName: kubeapiserver.Name},
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own.Namespace, Labels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}}},
		&corev1.Service{ObjectMeta: own, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: own, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(port))}},
		},
		route,
	} {
		if err := s.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create the objects of Shoot %s: %w", name, err)
		}
	}
	return nil
}

// route returns the TLSRoute for a host in the namespace of a Shoot.
func (s *seed) route(name, host string) (client.Object, error) {
	objects, err := apiserverexposure.Objects(apiserverexposure.Values{
		Namespace: namespaceOf(name), Mode: exposure.GatewayAPI, Hosts: []string{host}, Gateways: gateways(),
	})
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}

// newRoute returns a second route of the first Shoot, with a host of its own.
func (s *seed) newRoute(host string) (client.Object, error) {
	route, err := s.route(name(0), hostOf(host))
	if err == nil {
		route.SetName(host)
	}
	return route, err
}

// awaitStatus waits until all routes have the status that they are accepted.
func (s *seed) awaitStatus(ctx context.Context, shoots int) error {
	accepted := 0
	err := wait.PollUntilContextTimeout(ctx, statusPoll, statusTimeout, true, func(ctx context.Context) (bool, error) {
		list := &gatewayv1.TLSRouteList{}
		if err := s.client.List(ctx, list); err != nil {
			return false, fmt.Errorf("list the routes: %w", err)
		}
		accepted = 0
		for i := range list.Items {
			for _, parent := range list.Items[i].Status.Parents {
				if meta.IsStatusConditionTrue(parent.Conditions, string(gatewayv1.RouteConditionAccepted)) {
					accepted++
				}
			}
		}
		return accepted >= shoots, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d routes are accepted: %w", accepted, shoots, err)
	}
	return nil
}
