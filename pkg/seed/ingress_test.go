package seed

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// withController sets the feature gate to false, so that the Seed has an ingress controller.
func withController(in *Inputs) {
	in.Config.FeatureGates = map[string]bool{nginxingress.GateOfSeed: false}
}

// served sets what the DNS record needs.
func served(addresses ...string) func(*Inputs) {
	return func(in *Inputs) {
		in.ingressAddresses = addresses
		in.dnsCredentials = &Reference{Secret: &corev1.Secret{Data: map[string][]byte{"token": []byte("given")}}}
	}
}

// TestIngressController checks which objects the ingress controller has in each mode, and when there is none.
func TestIngressController(t *testing.T) {
	const without = "-"
	for name, test := range map[string]struct {
		change []func(*Inputs)
		// want are the kinds by which others reach the controller.
		want string
	}{
		"by default":                      {nil, without},
		"the gate is enabled":             {[]func(*Inputs){func(in *Inputs) { in.Config.FeatureGates = map[string]bool{nginxingress.GateOfSeed: true} }}, without},
		"the Seed has no ingress":         {[]func(*Inputs){withController, func(in *Inputs) { in.Seed.Spec.Ingress = nil }}, without},
		"the operator has one":            {[]func(*Inputs){withController, func(in *Inputs) { in.IsGarden = true }}, without},
		"Istio":                           {[]func(*Inputs){withController, exposedBy(exposure.Istio)}, "DestinationRule Gateway Service/ClusterIP VirtualService"},
		"Gateway API":                     {[]func(*Inputs){withController, exposedBy(exposure.GatewayAPI)}, "Service/ClusterIP TLSRoute"},
		"a load balancer":                 {[]func(*Inputs){withController, exposedBy(exposure.LoadBalancer)}, "Service/LoadBalancer"},
		"API servers are not exposed":     {[]func(*Inputs){withController, exposedBy(exposure.ClusterIP)}, "Service/ClusterIP"},
		"the exposure cannot be computed": {[]func(*Inputs){withController, exposedBy("Nothing")}, without},
	} {
		plan := planOf(t, known(t, test.change...))
		got := without
		if at := slices.IndexFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Name == bundleIngress }); at >= 0 {
			var reached []string
			for _, object := range plan.Bundles[at].Objects {
				kind := object.GetObjectKind().GroupVersionKind().Kind
				if service, is := object.(*corev1.Service); is && service.Name == nginxingress.Service {
					reached = append(reached, "Service/"+string(service.Spec.Type))
				} else if slices.Contains([]string{"Gateway", "VirtualService", "DestinationRule", "TLSRoute"}, kind) {
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

	in := known(t, withController)
	in.Emitted = allOf(planOf(t, in))
	if values, err := in.resourceManagerValues(); err != nil || values.Seed.IngressController["app"] != "nginx-ingress" {
		t.Errorf("the resource-manager makes no network policies for Ingresses: %v, %v", values.Seed.IngressController, err)
	}
	in.Config.FeatureGates = nil
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "tombstone nginx-ingress ") {
		t.Errorf("the controller is not deleted:\n%s", text)
	}
	in.IsGarden = true
	if plan := planOf(t, in); !slices.ContainsFunc(plan.Tombstones, func(one flow.Tombstone) bool { return one.Name == bundleIngress && one.Release == flow.ReleaseBundle }) {
		t.Errorf("the controller is not handed over to the operator:\n%s", summary(t, plan))
	}

	in = known(t, withController)
	in.Seed.Spec.Ingress.Controller.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"worker-processes":4}`)}
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "wait nginx-ingress-valid: providerConfig") {
		t.Errorf("a wrong configuration is not reported:\n%s", text)
	}
}

// TestGatewaysOf checks that only Services of API servers keep gateways.
func TestGatewaysOf(t *testing.T) {
	service := func(gateways string, labels map[string]string) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"networking.istio.io/exportTo": gateways}}}
	}
	server := kubeapiserver.Labels()
	got := gatewaysOf([]corev1.Service{
		service("istio-ingress--b,istio-ingress", server), service("istio-ingress", server), service("*", map[string]string{"app": "nginx-ingress"}), service("", server),
	})
	if !slices.Equal(got, []string{"istio-ingress", "istio-ingress--b"}) {
		t.Errorf("the gateways in use are %v", got)
	}
}

// TestIngressRecord checks the DNS record of the domain for Ingresses.
func TestIngressRecord(t *testing.T) {
	viaGateway := exposedBy(exposure.GatewayAPI)
	unmanaged := func(in *Inputs) { in.Seed.Spec.DNS.Provider.Type = corev1beta1.DNSUnmanaged }
	identity := func(in *Inputs) {
		in.dnsCredentials = &Reference{WorkloadIdentity: &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dns", UID: "1"}}}
	}
	for name, test := range map[string]struct {
		change []func(*Inputs)
		// want is the type of the record and its value, a reason to wait, or empty for no record.
		want string
	}{
		"an address":                {[]func(*Inputs){viaGateway, served("192.0.2.7")}, "A 192.0.2.7"},
		"a host name":               {[]func(*Inputs){viaGateway, served("lb.example.org")}, "CNAME lb.example.org"},
		"a workload identity":       {[]func(*Inputs){viaGateway, served("192.0.2.7"), identity}, "A 192.0.2.7"},
		"the controller's own":      {[]func(*Inputs){withController, exposedBy(exposure.LoadBalancer), served("192.0.2.8")}, "A 192.0.2.8"},
		"no address yet":            {[]func(*Inputs){viaGateway, served()}, "wait the Service istio-ingress/istio-ingressgateway, which serves the domain of spec.ingress, has no address yet"},
		"no credentials":            {[]func(*Inputs){viaGateway, served("192.0.2.7"), func(in *Inputs) { in.dnsCredentials = nil }}, "wait spec.dns.provider.credentialsRef: Secret garden/dns does not exist in the garden"},
		"other credentials":         {[]func(*Inputs){viaGateway, served("192.0.2.7"), func(in *Inputs) { in.dnsCredentials = &Reference{} }}, "wait spec.dns.provider.credentialsRef: a Secret cannot be used as credentials"},
		"nothing serves the domain": {[]func(*Inputs){exposedBy(exposure.LoadBalancer), served("192.0.2.7")}, ""},
		"users make the record":     {[]func(*Inputs){viaGateway, served("192.0.2.7"), unmanaged}, ""},
		"no domain":                 {[]func(*Inputs){viaGateway, served("192.0.2.7"), func(in *Inputs) { in.Seed.Spec.Ingress = nil }}, ""},
	} {
		plan, got := planOf(t, known(t, test.change...)), ""
		for _, wait := range plan.Waits {
			if strings.HasPrefix(wait.Name, bundleRecord) {
				got = "wait " + wait.Reason
			}
		}
		for _, bundle := range plan.Bundles {
			for _, object := range bundle.Objects {
				record, is := object.(*extensionsv1alpha1.DNSRecord)
				if !is {
					continue
				}
				got = string(record.Spec.RecordType) + " " + strings.Join(record.Spec.Values, ",")
				if record.Spec.Name != "*.ingress.local.seed.example.org" || record.Spec.SecretRef.Name != recordName || record.Annotations["checksum/credentials"] == "" {
					t.Errorf("%s: the record is %+v", name, record)
				}
			}
		}
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestIngressRecordIsReplaced checks that a record whose type changes is deleted before the new one is made, and that an extension that is not installed
// holds it.
func TestIngressRecordIsReplaced(t *testing.T) {
	in := known(t, exposedBy(exposure.GatewayAPI), served("192.0.2.7"))
	in.Emitted, in.recordMade = allOf(planOf(t, in)), in.recordIdentity()
	if text := summary(t, planOf(t, in)); strings.Contains(text, "tombstone") {
		t.Errorf("a record that does not change is deleted:\n%s", text)
	}
	in.ingressAddresses = []string{"192.0.2.8"}
	if text := summary(t, planOf(t, in)); strings.Contains(text, "tombstone") {
		t.Errorf("a record whose address changes is deleted:\n%s", text)
	}
	wrong := in
	wrong.Seed, wrong.ingressAddresses = in.Seed.DeepCopy(), nil
	exposedBy("Nothing")(&wrong)
	if text := summary(t, planOf(t, wrong)); strings.Contains(text, "tombstone") || strings.Contains(text, "the Service /") {
		t.Errorf("a wrong annotation deletes the record, or the reason is wrong:\n%s", text)
	}
	in.ingressAddresses = []string{"lb.example.org"}
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "tombstone dnsrecord-seed-ingress (confirmed: true)") || strings.Contains(text, "bundle dnsrecord-") {
		t.Errorf("a record whose type changes is not deleted first:\n%s", text)
	}
	in.Emitted, in.recordMade = slices.DeleteFunc(in.Emitted, func(key flow.Key) bool { return key.Name == bundleRecord }), ""
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "bundle dnsrecord-seed-ingress") {
		t.Errorf("the new record is not made:\n%s", text)
	}
	in.Extensions = installed("ControlPlane/local", "Infrastructure/local", "Worker/local", "Extension/networking-filter")
	plan := planOf(t, in)
	if !slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool { return slices.Contains(wait.Holds, in.key(bundleRecord)) }) {
		t.Errorf("no wait holds the record without its extension:\n%s", summary(t, plan))
	}
	in.Emitted = allOf(planOf(t, known(t, exposedBy(exposure.GatewayAPI), served("192.0.2.7"))))
	in.Deleting, in.Users, in.Bucket = true, &[]string{}, nil
	if text := summary(t, planOf(t, in)); !strings.Contains(text, "tombstone dnsrecord-seed-ingress (confirmed: true)") {
		t.Errorf("the record of a Seed that is deleted is not deleted with a confirmation:\n%s", text)
	}
}
