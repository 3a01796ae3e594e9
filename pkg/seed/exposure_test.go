package seed

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// exposedBy sets the mode of the Seed.
func exposedBy(mode exposure.Mode) func(*Inputs) {
	return func(in *Inputs) {
		in.Seed.Annotations = map[string]string{constants.AnnotationSeedExposure: string(mode)}
		in.usedGateways = []string{}
	}
}

// TestExposure checks the gateways of a Seed.
func TestExposure(t *testing.T) {
	up := func(change ...func(*Inputs)) Inputs {
		in := known(t, append([]func(*Inputs){exposedBy(exposure.Istio)}, change...)...)
		in.Emitted = allOf(planOf(t, in))
		return in
	}
	compare(t, "exposure-istio", summary(t, planOf(t, up())))

	in := up()
	exposedBy(exposure.LoadBalancer)(&in)
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "tombstone istio ") || !strings.Contains(text, "tombstone istio-system ") || strings.Contains(text, "tombstone crds-istio") {
		t.Errorf("gateways that no Shoot uses are not deleted, or the definitions are:\n%s", text)
	}
	for name, change := range map[string]func(*Inputs){
		"a Shoot uses a gateway": func(in *Inputs) { in.usedGateways = []string{"istio-ingress"} },
		"it is not known":        func(in *Inputs) { in.usedGateways = nil },
	} {
		in := up()
		exposedBy(exposure.LoadBalancer)(&in)
		change(&in)
		if plan := planOf(t, in); len(plan.Tombstones) > 0 {
			t.Errorf("%s, but the plan deletes %v", name, plan.Tombstones)
		}
	}
}

// TestGatewayAPI checks the gateways of the Gateway API, and that those of Istio are deleted before they are created, also while Shoots use them.
func TestGatewayAPI(t *testing.T) {
	in := known(t, exposedBy(exposure.GatewayAPI))
	in.Emitted = allOf(planOf(t, in))
	compare(t, "exposure-gatewayapi", summary(t, planOf(t, in)))

	in = known(t, exposedBy(exposure.Istio))
	in.Emitted = allOf(planOf(t, in))
	exposedBy(exposure.GatewayAPI)(&in)
	in.usedGateways = []string{"istio-ingress"}
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "tombstone istio ") || strings.Contains(text, "bundle gateways [") || !strings.Contains(text, "istio are not deleted yet") {
		t.Errorf("the gateways of Istio are not deleted first:\n%s", text)
	}
	in.Emitted = slices.DeleteFunc(in.Emitted, func(key flow.Key) bool { return strings.HasPrefix(key.Name, "istio") })
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "bundle gateways [") || strings.Contains(text, "bundle istio") {
		t.Errorf("the gateways are not created:\n%s", text)
	}
}

// TestUnusableExposure checks that gateways are kept while they cannot be computed.
func TestUnusableExposure(t *testing.T) {
	in := known(t, exposedBy(exposure.Istio))
	in.Emitted = allOf(planOf(t, in))
	for want, change := range map[string]func(*Inputs){
		"Shoots still use gateways that are not declared any more: istio-ingress-handler-old": func(in *Inputs) {
			in.usedGateways = []string{"istio-ingress", "istio-ingress-handler-old"}
		},
		"it must be one of Istio": exposedBy("Nothing"),
	} {
		changed := in
		changed.Seed = in.Seed.DeepCopy()
		change(&changed)
		plan := planOf(t, changed)
		if text := summary(t, plan); !strings.Contains(text, want) || len(plan.Tombstones) > 0 || strings.Contains(text, "bundle istio [") {
			t.Errorf("the plan does not keep the gateways because %q:\n%s", want, text)
		}
	}
}

// TestInactiveSettings checks which settings of load balancers are reported to have no effect.
func TestInactiveSettings(t *testing.T) {
	for mode, want := range map[exposure.Mode]string{
		exposure.Istio: "", exposure.LoadBalancer: "spec.settings.loadBalancerServices.proxyProtocol", exposure.ClusterIP: "spec.settings.loadBalancerServices (",
		"Nothing": "",
	} {
		in := known(t, exposedBy(mode))
		found := slices.ContainsFunc(Inactive(in.Seed), func(text string) bool { return strings.HasPrefix(text, "spec.settings.loadBalancerServices") })
		if found != (want != "") || want != "" && !strings.HasPrefix(inactiveExposure(in.Seed)[0], want) {
			t.Errorf("%s: got %q", mode, Inactive(in.Seed))
		}
		in.Seed.Spec.Settings.LoadBalancerServices.ProxyProtocol = ptr.To(corev1beta1.LoadBalancerServicesProxyProtocol{})
		if mode == exposure.LoadBalancer && inactiveExposure(in.Seed) != nil {
			t.Errorf("without the PROXY protocol: %q", inactiveExposure(in.Seed))
		}
	}
}
