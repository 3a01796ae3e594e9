package garden

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// withController sets the feature gate to false, so that the runtime cluster has an ingress controller, and two domains for it.
func withController(in *Inputs) {
	in.Config.FeatureGates = map[string]bool{nginxingress.GateOfGarden: false}
	in.Garden.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{
		{Name: "ingress.example.org", Provider: ptr.To("one")}, {Name: "ingress.example.com", Provider: ptr.To("one")},
	}
}

// TestIngressController checks how the ingress controller of the runtime cluster is reached, and when there is none.
func TestIngressController(t *testing.T) {
	const without = "-"
	for name, test := range map[string]struct {
		in   Inputs
		want string
	}{
		"by default":      {byIstio(withController, func(in *Inputs) { in.Config.FeatureGates = nil }), without},
		"no domain":       {byIstio(withController, func(in *Inputs) { in.Garden.Spec.RuntimeCluster.Ingress.Domains = nil }), without},
		"Istio":           {byIstio(withController), "DestinationRule Gateway Service/ClusterIP VirtualService"},
		"a load balancer": {known(small(), withController), "Service/LoadBalancer"},
	} {
		plan, got := planOf(t, test.in), without
		if at := slices.IndexFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Name == bundleIngress }); at >= 0 {
			var reached []string
			for _, object := range plan.Bundles[at].Objects {
				kind := object.GetObjectKind().GroupVersionKind().Kind
				if service, is := object.(*corev1.Service); is && service.Name == nginxingress.Service {
					reached = append(reached, "Service/"+string(service.Spec.Type))
				} else if slices.Contains([]string{"Gateway", "VirtualService", "DestinationRule"}, kind) {
					reached = append(reached, kind)
				}
			}
			slices.Sort(reached)
			got = strings.Join(reached, " ")
		}
		if got != test.want {
			t.Errorf("%s: the controller is reached by %q, want %q", name, got, test.want)
		}
	}

	in := byIstio(withController)
	if got := in.ingressHosts(); !slices.Equal(got, []string{"*.ingress.example.org", "*.ingress.example.com"}) {
		t.Errorf("the hosts are %v", got)
	}
	in.SeedBundles = []string{bundleIngress}
	if plan := planOf(t, in); !slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool { return strings.HasPrefix(wait.Name, bundleIngress) }) {
		t.Error("the operator does not wait until gardenlet has handed over the controller")
	}
}

// TestIngressRecords checks that a gateway serves the hosts of the domains for Ingresses, with DNS records that have a name.
func TestIngressRecords(t *testing.T) {
	in := byIstio(withController)
	names := in.recordNames()
	for _, want := range []string{"dnsrecord-wildcard-ingress-example-org-local", "dnsrecord-wildcard-ingress-example-com-local"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	in.Garden.Spec.RuntimeCluster.Ingress.Domains[1].Provider = ptr.To("other")
	if records := in.records(); !strings.Contains(records[len(records)-1].problem, `spec.runtimeCluster.ingress.domains[1].provider: spec.dns.providers has no "other"`) {
		t.Errorf("the problem is %q", records[len(records)-1].problem)
	}
	wrong := byIstio(withController)
	wrong.Emitted = []flow.Key{wrong.key("dnsrecord-wildcard-ingress-example-org-local")}
	wrong.Garden.Annotations[constants.AnnotationGardenExposure], wrong.Addresses = "Nothing", nil
	if plan := planOf(t, wrong); len(plan.Tombstones) > 0 {
		t.Errorf("a wrong annotation deletes %v", plan.Tombstones)
	}
	balanced := known(small(), withController, func(in *Inputs) { in.Garden.Spec.DNS = byIstio().Garden.Spec.DNS })
	if names := balanced.recordNames(); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "wildcard") }) {
		t.Errorf("without a gateway there are the records %v", names)
	}
}
