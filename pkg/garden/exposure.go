package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/istio"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

const (
	bundleIstioKinds = inventory.IstioKinds
	bundleIstio      = inventory.Istio
	bundleGateway    = prefix + "istio"
	// bundleExposure has the objects through which the gateway forwards connections to the API server.
	bundleExposure = "kube-apiserver-sni"
	// choiceRoutes of the bundle of the API server's Service are the routes to the API server: see exposure.Routes.
	choiceRoutes = "routes"
)

// route returns the name of the route that DNS records should point to; empty for none.
func route(mode exposure.Mode) string {
	switch mode {
	case exposure.Istio:
		return exposure.GardenGatewayNamespace
	case exposure.LoadBalancer:
		return exposure.OwnBalancer
	}
	return ""
}

// routes returns the routes to the API server: the wanted one, and previous ones that clients may still use.
func (in Inputs) routes() exposure.Routes {
	mode, err := exposure.ModeOfGarden(in.Garden)
	if err != nil {
		return in.Routes
	}
	return in.Routes.Next(route(mode), in.recordsSettled(), in.Now)
}

// recordsSettled reports whether clients find the wanted route by its DNS records. It is not known of records that the operator does not make.
func (in Inputs) recordsSettled() bool {
	return len(in.records()) > 0 && len(in.Addresses) > 0 && in.RecordsReady
}

// unknownExposure names a wrong annotation of the Garden, empty if it is right.
func (in Inputs) unknownExposure() string {
	if _, err := exposure.ModeOfGarden(in.Garden); err != nil {
		return err.Error()
	}
	return ""
}

// exposureParts returns the parts with the gateway, and what it needs. They stay as long as clients may use the gateway.
func (in Inputs) exposureParts() []table.Part {
	absent, unknown := "", in.unknownExposure()
	if unknown == "" && !in.routes().Has(exposure.GardenGatewayNamespace) {
		absent = "the API server of the virtual garden is not exposed by Istio"
	}
	ofSeed := slices.Contains(in.SeedBundles, inventory.Gateways) // gardenlet needs the control plane of Istio
	return []table.Part{
		{Name: bundleIstioKinds, Absent: absent, Released: ofSeed, Objects: definitions(bundleIstioKinds), Unknown: unknown, Adjust: keepObjects, DeletedAfter: []string{bundleIstio}},
		{
			Name: bundleIstio, Absent: absent, Released: ofSeed, Removed: true, Objects: in.istioControlPlane, Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleSystem), table.Healthy(bundleIstioKinds)}, DeletedAfter: append([]string{bundleGateway}, in.forwardings()...),
		},
		{
			Name: bundleGateway, Absent: absent, Removed: true, Objects: in.gateway, Unknown: unknown,
			Needs: []table.Need{table.Healthy(bundleIstio)}, DeletedAfter: in.forwardings(),
		},
		{
			Name: bundleExposure, Absent: absent, Removed: true, Objects: in.forwarding, Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleServerService, bundleIstioKinds)}, DeletedAfter: append([]string{bundleServer}, in.recordNames()...),
		},
	}
}

// forwardings returns the bundles with objects through which the gateway forwards connections.
func (in Inputs) forwardings() []string {
	names := []string{bundleExposure, bundleIngress}
	if in.discovery() != nil {
		names = append(names, bundleDiscoveryExposure)
	}
	return names
}

func (in Inputs) istioControlPlane() ([]client.Object, error) {
	image, err := in.image(istio.ImageControlPlane)
	if err != nil {
		return nil, err
	}
	return istio.ControlPlane(istio.ControlPlaneValues{Image: image, Zones: in.Garden.Spec.RuntimeCluster.Provider.Zones, Replicas: in.replicas(2)})
}

func (in Inputs) gateway() ([]client.Object, error) {
	image, err := in.image(istio.ImageGateway)
	if err != nil {
		return nil, err
	}
	return istio.Gateway(istio.GatewayValues{
		Gateway: exposure.GatewayOfGarden(in.Garden), Image: image, DualStack: len(in.Garden.Spec.RuntimeCluster.Networking.IPFamilies) > 1,
		VerticalPodAutoscaler: true, SingleNode: in.Nodes == 1,
		Serves: netpol.LabelPrefix + in.Namespace + "-" + prefix + "kube-apiserver-tcp-443",
	})
}

// forwarding returns the objects through which the gateway forwards connections, without decrypting them.
func (in Inputs) forwarding() ([]client.Object, error) {
	return apiserverexposure.Objects(apiserverexposure.Values{
		Namespace: in.Namespace, Service: prefix + kubeapiserver.Name, Mode: exposure.Istio, Hosts: in.hosts(),
		Gateways: []exposure.Gateway{exposure.GatewayOfGarden(in.Garden)},
	})
}

// serverService returns the Service of the API server. It keeps a load balancer of its own as long as clients may use it.
func (in Inputs) serverService() ([]client.Object, error) {
	values, routes := kubeapiserver.ServiceValues{Namespace: in.Namespace, Name: prefix + kubeapiserver.Name}, in.routes()
	if routes.Has(exposure.OwnBalancer) {
		balancer := exposure.BalancerOfGarden(in.Garden)
		values.Balancer = &balancer
	}
	if routes.Has(exposure.GardenGatewayNamespace) {
		values.Gateways = []string{exposure.GardenGatewayNamespace}
	}
	objects, err := kubeapiserver.Service(values)
	for _, object := range objects {
		annotations := object.GetAnnotations()
		delete(annotations, netpol.AnnotationNamespaceAlias) // it is that of all Shoots
		object.SetAnnotations(annotations)
	}
	return objects, err
}

// recordRoutes stores the routes with the bundle of the Service.
func (in Inputs) recordRoutes(bundle *flow.Bundle) {
	if routes := in.routes().String(); routes != "" {
		bundle.Choices = map[string]string{choiceRoutes: routes}
	}
}

// observeExposure reads the routes so far, the addresses to which DNS records should point, and whether the records are ready.
func (r *reconciler) observeExposure(ctx context.Context, in *Inputs) error {
	if err := r.observeRoutes(ctx, in); err != nil {
		return err
	}
	mode, err := exposure.ModeOfGarden(in.Garden)
	if err != nil {
		return nil //nolint:nilerr // the plan reports it
	}
	key := client.ObjectKey{Namespace: in.Namespace, Name: prefix + kubeapiserver.Name}
	if mode == exposure.Istio {
		key = client.ObjectKey{Namespace: exposure.GardenGatewayNamespace, Name: exposure.GatewayApp}
	}
	var service corev1.Service
	err = r.caches.runtime.Get(ctx, key, &service)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Service %s: %w", key, err)
	}
	if err == nil && (mode == exposure.ClusterIP || service.Spec.Type == corev1.ServiceTypeLoadBalancer) {
		in.Addresses = dnsvalues.AddressesOf(&service)
	}
	return nil
}

// observeRoutes reads the recorded routes, and the health of the DNS records.
func (r *reconciler) observeRoutes(ctx context.Context, in *Inputs) error {
	var list resourcesv1alpha1.ManagedResourceList
	if err := r.caches.runtime.List(ctx, &list, client.InNamespace(in.Namespace), in.Owner.Labels()); err != nil {
		return fmt.Errorf("list the ManagedResources of the Garden: %w", err)
	}
	var records []resourcesv1alpha1.ManagedResource
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{}}
	key := in.key(bundleServerService)
	for i := range list.Items {
		switch mr := &list.Items[i]; {
		case mr.Name == key.Name:
			live.ManagedResources[key] = mr
		case strings.HasPrefix(mr.Name, prefixRecord):
			records = append(records, *mr)
		}
	}
	in.RecordsReady = readiness.CheckAll(records) == nil
	recorded, _, err := live.Choice(in.Owner, key, choiceRoutes)
	if err != nil {
		return err
	}
	in.Routes, err = exposure.ParseRoutes(recorded)
	return err
}
