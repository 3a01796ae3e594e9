package shoot

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// exposedBy sets the mode of the Seed, and what is observed of the Services.
func exposedBy(mode exposure.Mode) func(*Inputs) {
	return func(in *Inputs) {
		in.Seed.Annotations = map[string]string{constants.AnnotationSeedExposure: string(mode)}
		in.Seed.Spec.DNS.Internal.Type = "local"
		in.Addresses, in.ServiceIPs = []string{"192.0.2.1"}, []string{"10.1.2.3"}
		in.References = map[string]Referenced{"Secret garden/": {Secret: &corev1.Secret{}}}
	}
}

func bundleOf(plan flow.Plan, name string) *flow.Bundle {
	for i := range plan.Bundles {
		if plan.Bundles[i].Name == name {
			return &plan.Bundles[i]
		}
	}
	return nil
}

func objectOf[T client.Object](t *testing.T, plan flow.Plan, bundle string) T {
	t.Helper()
	if found := bundleOf(plan, bundle); found != nil {
		for _, object := range found.Objects {
			if typed, is := object.(T); is {
				return typed
			}
		}
	}
	var none T
	t.Fatalf("the plan has no %T in %s:\n%s", none, bundle, summary(t, plan))
	return none
}

// describe returns how a plan exposes the API server.
func describe(t *testing.T, in Inputs) string {
	t.Helper()
	plan := planOf(t, in)
	service, server := objectOf[*corev1.Service](t, plan, bundleAPIServerService), objectOf[*appsv1.Deployment](t, plan, bundleAPIServer)
	text := string(service.Spec.Type) + " gateways " + service.Annotations["networking.istio.io/exportTo"]
	text += " label " + service.Labels[constants.LabelAPIServerExposure] + "/" + server.Labels[constants.LabelAPIServerExposure]
	for _, flag := range server.Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(flag, "--advertise-address") || strings.HasPrefix(flag, "--endpoint-reconciler-type") {
			text += " " + flag
		}
	}
	if sni := bundleOf(plan, bundleExposure); sni != nil {
		var kinds []string
		for _, object := range sni.Objects {
			kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
		}
		text += " " + strings.Join(kinds, ",")
	}
	return text
}

// TestExposure checks how each mode exposes a Shoot.
func TestExposure(t *testing.T) {
	const managed = " label gardener-managed/gardener-managed"
	for name, test := range map[string]struct {
		change []func(*Inputs)
		want   string
	}{
		"istio": {
			[]func(*Inputs){exposedBy(exposure.Istio)},
			"ClusterIP gateways istio-ingress--b" + managed + " --advertise-address=240.1.2.3 --endpoint-reconciler-type=lease Gateway,VirtualService,DestinationRule",
		},
		"istio, all zones": {
			[]func(*Inputs){exposedBy(exposure.Istio), available(corev1beta1.FailureToleranceTypeZone)},
			"ClusterIP gateways istio-ingress" + managed + " --advertise-address=240.1.2.3 --endpoint-reconciler-type=lease Gateway,VirtualService,DestinationRule",
		},
		"the Gateway API": {
			[]func(*Inputs){exposedBy(exposure.GatewayAPI)},
			"ClusterIP gateways istio-ingress--b" + managed + " --advertise-address=240.1.2.3 --endpoint-reconciler-type=lease TLSRoute",
		},
		"load balancers": {
			[]func(*Inputs){exposedBy(exposure.LoadBalancer)}, "LoadBalancer gateways  label / --advertise-address=192.0.2.1 --endpoint-reconciler-type=lease",
		},
		"load balancers with names": {
			[]func(*Inputs){exposedBy(exposure.LoadBalancer), func(in *Inputs) { in.Addresses = []string{"lb.example.org"} }}, "LoadBalancer gateways  label /",
		},
		"not exposed": {[]func(*Inputs){exposedBy(exposure.ClusterIP)}, "ClusterIP gateways  label /"},
		"moving to another gateway": {
			[]func(*Inputs){exposedBy(exposure.Istio), func(in *Inputs) { in.Routes = exposure.Routes{Wanted: "istio-ingress"} }},
			"ClusterIP gateways istio-ingress--b,istio-ingress" + managed +
				" --advertise-address=240.1.2.3 --endpoint-reconciler-type=lease Gateway,Gateway,VirtualService,DestinationRule",
		},
		"moving to a gateway": {
			[]func(*Inputs){exposedBy(exposure.Istio), func(in *Inputs) { in.Routes = exposure.Routes{Wanted: exposure.OwnBalancer} }},
			"LoadBalancer gateways istio-ingress--b" + managed +
				" --advertise-address=240.1.2.3 --endpoint-reconciler-type=lease Gateway,VirtualService,DestinationRule",
		},
		"moved": {
			[]func(*Inputs){exposedBy(exposure.Istio), func(in *Inputs) {
				in.Routes = exposure.Routes{Wanted: "istio-ingress--b", Leaving: []exposure.Leaving{{Name: "istio-ingress", Ends: now}, {Name: exposure.OwnBalancer, Ends: now}}}
			}},
			"ClusterIP gateways istio-ingress--b" + managed + " --advertise-address=240.1.2.3 --endpoint-reconciler-type=lease Gateway,VirtualService,DestinationRule",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(t, known(t, test.change...)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestRoutesAreRecorded checks that the routes are stored with the Service, and that the plan changes when one ends.
func TestRoutesAreRecorded(t *testing.T) {
	in := known(t, exposedBy(exposure.Istio), func(in *Inputs) { in.Routes = exposure.Routes{Wanted: "istio-ingress"} })
	plan := planOf(t, in)
	recorded := bundleOf(plan, bundleAPIServerService).Choices[choiceRoutes]
	if recorded != "istio-ingress--b,istio-ingress 2026-11-23T12:10:00Z" {
		t.Errorf("recorded %q", recorded)
	}
	var err error
	if in.Routes, err = exposure.ParseRoutes(recorded); err != nil {
		t.Fatal(err)
	}
	if next := planOf(t, in).Next; !next.Equal(now.Add(10 * time.Minute)) {
		t.Errorf("the next plan is due at %s", next)
	}
	in.Unfinished = map[string]Unfinished{bundleInternalRecord: {Since: now}}
	in.Now = now.Add(9 * time.Minute)
	if recorded = bundleOf(planOf(t, in), bundleAPIServerService).Choices[choiceRoutes]; recorded != "istio-ingress--b,istio-ingress 2026-11-23T12:19:00Z" {
		t.Errorf("while a DNS record is not finished: %q", recorded)
	}
	record := bundleOf(planOf(t, in), bundleInternalRecord)
	if record == nil || !slices.ContainsFunc(record.Spec.DependsOn, func(need resourcesv1alpha1.Dependency) bool { return need.Name == bundleExposure }) {
		t.Errorf("the DNS record does not wait for the gateway: %v", record)
	}
}

// TestExposureIsNotKnown checks that nothing is deleted or changed as long as an input is not known or invalid.
func TestExposureIsNotKnown(t *testing.T) {
	class := func(in *Inputs) { in.Shoot.Spec.ExposureClassName = ptr.To("internet") }
	handler := func(name string) func(*Inputs) {
		return func(in *Inputs) {
			class(in)
			in.ExposureClass = &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "internet"}, Handler: name}
		}
	}
	for name, test := range map[string]struct {
		mode   exposure.Mode
		change func(*Inputs)
		want   string
	}{
		"no address of the gateway":         {exposure.Istio, func(in *Inputs) { in.Addresses = nil }, "the Service istio-ingress--b/istio-ingressgateway has no address yet"},
		"no address of the load balancer":   {exposure.LoadBalancer, func(in *Inputs) { in.Addresses = nil }, "the load balancer of Service shoot--dev--one/kube-apiserver has no address yet"},
		"no cluster IP":                     {exposure.Istio, func(in *Inputs) { in.ServiceIPs = nil }, "the Service shoot--dev--one/kube-apiserver has no cluster IP yet"},
		"the exposure class is missing":     {exposure.Istio, class, "spec.exposureClassName: ExposureClass internet does not exist"},
		"its handler is missing":            {exposure.GatewayAPI, handler("nowhere"), "needs the handler nowhere"},
		"exposure classes are not possible": {exposure.ClusterIP, handler("nowhere"), "does not expose API servers"},
		"the mode does not exist": {exposure.Istio, func(in *Inputs) {
			in.Seed.Annotations[constants.AnnotationSeedExposure] = "Other"
		}, "metadata.annotations[seed.gardener.cloud/exposure] of Seed local"},
	} {
		t.Run(name, func(t *testing.T) {
			in := up(t, exposedBy(test.mode))
			for _, bundle := range planOf(t, in).Bundles {
				if !slices.Contains(in.Emitted, bundle.Key) {
					in.Emitted = append(in.Emitted, bundle.Key)
				}
			}
			test.change(&in)
			plan := planOf(t, in)
			if text := summary(t, plan); !strings.Contains(text, test.want) {
				t.Errorf("the plan does not say %q:\n%s", test.want, text)
			}
			if len(plan.Tombstones) > 0 {
				t.Errorf("the plan deletes %v", plan.Tombstones)
			}
		})
	}
}
