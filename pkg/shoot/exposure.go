package shoot

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-k8s/trellis/pkg/component/gateway"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

const (
	// bundleExposure has the objects through which shared gateways forward connections to the API server (Gardener).
	bundleExposure = "kube-apiserver-sni"
	// choiceRoutes of the bundle of the API server's Service are the routes to the API server: see exposure.Routes.
	choiceRoutes = "routes"
)

// exposed returns how the API server is exposed. The error names the field that must be changed.
func (in Inputs) exposed() (exposure.Exposure, error) {
	name := ptr.Deref(in.Shoot.Spec.ExposureClassName, "")
	if name != "" && in.ExposureClass == nil {
		return exposure.Exposure{}, fmt.Errorf("spec.exposureClassName: ExposureClass %s does not exist", name)
	}
	var hosts []string
	for _, host := range []string{in.internalHost(), in.externalHost()} {
		if host != "" {
			hosts = append(hosts, host)
		}
	}
	return exposure.Of(exposure.Inputs{Seed: in.Seed, Config: in.Config, Class: in.ExposureClass, Zones: in.zones(), Hosts: hosts})
}

// route returns the name of the route that the DNS records of the Shoot should point to.
func route(exposed exposure.Exposure) string {
	switch {
	case exposed.Gateway != nil:
		return exposed.Gateway.Namespace
	case exposed.Balancer != nil:
		return exposure.OwnBalancer
	}
	return ""
}

// routes returns the routes to the API server: the wanted one, and previous ones that clients may still use.
func (in Inputs) routes(exposed exposure.Exposure) exposure.Routes {
	return in.Routes.Next(route(exposed), in.recordsSettled(), in.Now)
}

// recordsSettled reports whether all DNS records have the addresses of the wanted route.
func (in Inputs) recordsSettled() bool {
	_, internal := in.Unfinished[bundleInternalRecord]
	_, external := in.Unfinished[bundleExternalRecord]
	return len(in.Addresses) > 0 && !internal && !external
}

// openGateways returns the gateways of all open routes, the wanted one first. A previous one that gardenlet's configuration does
// not have any more is not among them.
func (in Inputs) openGateways(exposed exposure.Exposure) []exposure.Gateway {
	if exposed.Gateway == nil {
		return nil
	}
	open := []exposure.Gateway{*exposed.Gateway}
	routes := in.routes(exposed)
	for _, gateway := range exposure.Gateways(in.Seed, in.Config) {
		if gateway.Namespace != exposed.Gateway.Namespace && routes.Has(gateway.Namespace) {
			open = append(open, gateway)
		}
	}
	return open
}

// apiServerService returns the Service of the API server. A load balancer of its own is kept as long as clients may use it.
func (in Inputs) apiServerService() ([]client.Object, error) {
	exposed, err := in.exposed()
	if err != nil {
		return nil, err
	}
	values := kubeapiserver.ServiceValues{Namespace: in.Namespace, Balancer: exposed.Balancer}
	for _, gateway := range in.openGateways(exposed) {
		values.Gateways = append(values.Gateways, gateway.Namespace)
	}
	if values.Balancer == nil && in.routes(exposed).Has(exposure.OwnBalancer) {
		own := exposure.OwnSettings(in.Seed)
		values.Balancer = &own
	}
	return kubeapiserver.Service(values)
}

// recordRoutes stores the routes with the bundle of the Service.
func (in Inputs) recordRoutes(bundle *flow.Bundle) {
	if exposed, err := in.exposed(); err == nil {
		if routes := in.routes(exposed).String(); routes != "" {
			bundle.Choices = map[string]string{choiceRoutes: routes}
		}
	}
}

// exposurePart returns the part with the objects for shared gateways.
func (in Inputs) exposurePart() table.Part {
	part := table.Part{
		Name: bundleExposure, Removed: true, Needs: []table.Need{table.Applied(bundleAPIServerService)},
		DeletedAfter: []string{bundleAPIServer, bundleInternalRecord, bundleExternalRecord}, Absent: "the Seed exposes API servers without gateways",
	}
	exposed, err := in.exposed()
	if err == nil && exposed.Gateway == nil {
		return part
	}
	part.Absent, part.Objects = "", func() ([]client.Object, error) {
		if err != nil {
			return nil, err
		}
		return apiserverexposure.Objects(apiserverexposure.Values{
			Namespace: in.Namespace, Mode: exposed.Mode, Hosts: exposed.Hosts, Gateways: in.openGateways(exposed),
		})
	}
	return part
}

// advertisedIP returns the address that the API server advertises in its cluster, or empty for the addresses of its Pods. They
// are right as long as nodes reach the Pods of the seed. With gateways, proxies on the nodes serve the address.
func (in Inputs) advertisedIP() (string, error) {
	exposed, err := in.exposed()
	if err != nil {
		return "", err
	}
	switch {
	case exposed.Balancer != nil:
		for _, address := range in.Addresses {
			if _, err := netip.ParseAddr(address); err == nil {
				return address, nil
			}
		}
	case exposed.Gateway != nil && len(in.ServiceIPs) > 0:
		return exposure.AdvertisedAddress(in.ServiceIPs[0])
	}
	return "", nil
}

// withoutServerProxy returns why nodes have no proxy for the API server, empty if they have one.
func (in Inputs) withoutServerProxy() string {
	if exposed, err := in.exposed(); err == nil && exposed.Gateway == nil {
		return "the Seed exposes API servers without gateways"
	}
	return ""
}

// serverProxy returns the proxies on nodes through which clients in the cluster reach the API server.
func (in Inputs) serverProxy() ([]client.Object, error) {
	address, err := in.advertisedIP()
	if err != nil {
		return nil, err
	}
	image, err := in.shootImage(gateway.Image)
	if err != nil {
		return nil, err
	}
	return apiserverproxy.Objects(apiserverproxy.Values{
		Image: image, Address: address, Host: in.outsideHost(), VerticalPodAutoscaler: in.scales(),
		Destination: "outbound|443||" + kubeapiserver.Name + "." + in.Namespace + ".svc.cluster.local",
	})
}

// unknownAdvertised names the address that the API server advertises, if it is not known yet.
func (in Inputs) unknownAdvertised() string {
	exposed, err := in.exposed()
	switch {
	case err != nil:
		return err.Error()
	case exposed.Balancer != nil && len(in.Addresses) == 0:
		return "the load balancer of Service " + in.Namespace + "/" + kubeapiserver.Name + " has no address yet"
	case exposed.Gateway != nil && len(in.ServiceIPs) == 0:
		return "the Service " + in.Namespace + "/" + kubeapiserver.Name + " has no cluster IP yet"
	}
	return ""
}

// missingAddress returns why the addresses for DNS records are not known.
func (in Inputs) missingAddress() string {
	service := in.Namespace + "/" + kubeapiserver.Name
	exposed, err := in.exposed()
	switch {
	case err != nil:
		return err.Error()
	case exposed.Gateway != nil:
		service = exposed.Gateway.Namespace + "/" + exposed.Gateway.Service
	}
	return "the Service " + service + " has no address yet"
}

// observeExposure reads the ExposureClass, the routes so far, and the addresses to which DNS records should point.
func (r *reconciler) observeExposure(ctx context.Context, in *Inputs) error {
	if name := ptr.Deref(in.Shoot.Spec.ExposureClassName, ""); name != "" {
		class := &corev1beta1.ExposureClass{}
		err := r.objects.Get(ctx, in.user(), client.ObjectKey{Name: name}, class)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ExposureClass %s of spec.exposureClassName: %w", name, err)
		}
		if err == nil {
			in.ExposureClass = class
		}
	}
	if err := r.observeRoutes(ctx, in); err != nil {
		return err
	}
	own, err := r.service(ctx, client.ObjectKey{Namespace: in.Namespace, Name: kubeapiserver.Name})
	if err != nil {
		return err
	}
	if own != nil {
		in.ServiceIPs = slices.DeleteFunc(slices.Clone(own.Spec.ClusterIPs), func(ip string) bool { return ip == corev1.ClusterIPNone })
	}
	exposed, err := in.exposed()
	serving := own
	switch {
	case err != nil:
		return nil //nolint:nilerr // the plan reports it
	case exposed.Gateway != nil:
		if serving, err = r.service(ctx, client.ObjectKey{Namespace: exposed.Gateway.Namespace, Name: exposed.Gateway.Service}); err != nil {
			return err
		}
	case exposed.Balancer != nil && own != nil && own.Spec.Type != corev1.ServiceTypeLoadBalancer:
		serving = nil // it gets a load balancer
	}
	if serving != nil {
		in.Addresses = dnsvalues.AddressesOf(serving)
	}
	return nil
}

// service returns a Service of an API server or a gateway, or nil if it does not exist.
func (r *reconciler) service(ctx context.Context, key client.ObjectKey) (*corev1.Service, error) {
	service := &corev1.Service{}
	err := r.caches.access.Get(ctx, key, service)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Service %s: %w", key, err)
	}
	if err == nil && service.DeletionTimestamp == nil {
		return service, nil
	}
	return nil, nil //nolint:nilnil // see the comment of the function
}

// observeRoutes reads the recorded routes.
func (r *reconciler) observeRoutes(ctx context.Context, in *Inputs) error {
	key, mr := in.key(bundleAPIServerService), &resourcesv1alpha1.ManagedResource{}
	err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	recorded, _, err := live.Choice(in.Owner, key, choiceRoutes)
	if err != nil {
		return err
	}
	in.Routes, err = exposure.ParseRoutes(recorded)
	return err
}

// ofService maps the Service of an API server to its Shoot, and that of a gateway to all Shoots.
func (r *reconciler) ofService(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetLabels()[exposure.LabelApp] == exposure.GatewayApp {
		return r.all(ctx, object)
	}
	return r.byNamespace(ctx, object)
}

// internalHost returns the host name of the API server in the internal domain of the Seed, or an empty string if the Seed has none.
func (in Inputs) internalHost() string {
	internal := in.Seed.Spec.DNS.Internal
	if internal == nil {
		return ""
	}
	domain := internal.Domain
	if !strings.Contains(domain, "internal") {
		domain = "internal." + domain
	}
	return constants.PrefixAPIServerHost + in.Shoot.Name + "." + in.Project + "." + domain
}

// externalHost returns the host name of the API server in the domain of the Shoot, or an empty string if the Shoot has none.
func (in Inputs) externalHost() string {
	if dns := in.Shoot.Spec.DNS; dns != nil {
		if domain := ptr.Deref(dns.Domain, ""); domain != "" {
			return constants.PrefixAPIServerHost + domain
		}
	}
	return ""
}

// insideHost returns the host name of the API server for clients in the seed.
func (in Inputs) insideHost() string { return kubeapiserver.Name + "." + in.Namespace + ".svc" }

// outsideHost returns the host name of the API server for clients outside the seed. A Shoot without a domain is only
// reachable from the seed.
func (in Inputs) outsideHost() string {
	for _, host := range []string{in.internalHost(), in.externalHost()} {
		if host != "" {
			return host
		}
	}
	return in.insideHost()
}

// hosts returns the host names in the server certificate of the API server for clients outside the control plane.
func (in Inputs) hosts() []string {
	hosts := []string{in.Namespace}
	for _, host := range []string{in.internalHost(), in.externalHost()} {
		if host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// advertised returns status.advertisedAddresses.
func (in Inputs) advertised() []corev1beta1.ShootAdvertisedAddress {
	var addresses []corev1beta1.ShootAdvertisedAddress
	add := func(name, host string) {
		if host != "" {
			addresses = append(addresses, corev1beta1.ShootAdvertisedAddress{Name: name, URL: "https://" + host})
		}
	}
	add(constants.AdvertisedAddressExternal, in.externalHost())
	add(constants.AdvertisedAddressInternal, in.internalHost())
	if len(addresses) == 0 {
		add(constants.AdvertisedAddressUnmanaged, in.insideHost())
	}
	issuer, _ := kubeapiserver.Issuer(in.server(), in.outsideHost(), in.managedIssuer())
	return append(addresses, corev1beta1.ShootAdvertisedAddress{Name: constants.AdvertisedAddressServiceAccountIssuer, URL: issuer})
}
