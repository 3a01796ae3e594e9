package garden

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// TestDiscovery checks what the discovery server of a Garden gets: its host, its certificate, the documents of workload identities, and how clients
// reach it. Without the field, there is none.
func TestDiscovery(t *testing.T) {
	withServer := func(change ...func(*operatorv1alpha1.Garden)) *operatorv1alpha1.Garden {
		garden := small()
		garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{
			Domain: &operatorv1alpha1.DNSDomain{Name: "keys.example.org"},
		}
		for _, each := range change {
			each(garden)
		}
		return garden
	}
	for _, bundle := range planOf(t, known(small())).Bundles {
		if strings.HasPrefix(bundle.Name, "gardener-discovery-server") {
			t.Errorf("a Garden without a discovery server has %s", bundle.Name)
		}
	}
	plan := planOf(t, known(withServer()))
	for bundle, wanted := range map[string][]string{
		bundleDiscovery:          {`"secretName":"gardener-discovery-server`, "--workload-identity-jwks-file=", `"shoot-access-gardener-discovery-server"`},
		bundleDiscoveryInVirtual: {`"shoot-service-account-issuer"`, `"hostname":"a2V5cy5leGFtcGxlLm9yZw=="`, `"verbs":["list","watch"]`},
		bundleAccess:             {`"shoot-access-gardener-discovery-server"`},
		bundleInfo:               {"https://keys.example.org/garden/workload-identity/issuer"},
	} {
		got := bundleOf(t, plan, bundle)
		for _, text := range wanted {
			if !strings.Contains(got, text) {
				t.Errorf("%s does not contain %s: %s", bundle, text, got)
			}
		}
	}
	forwarded := known(withServer(func(garden *operatorv1alpha1.Garden) {
		garden.Annotations = map[string]string{constants.AnnotationGardenExposure: "Istio"}
	}))
	if got := bundleOf(t, planOf(t, forwarded), bundleDiscoveryExposure); !strings.Contains(got, `"sniHosts":["keys.example.org"]`) || !strings.Contains(got, "PASSTHROUGH") {
		t.Errorf("the gateway forwards %s", got)
	}
	if got := bundleOf(t, plan, bundleDiscovery); !strings.Contains(got, `"type":"LoadBalancer"`) {
		t.Errorf("without a gateway, the server has no load balancer: %s", got)
	}
	homeless := known(withServer(func(garden *operatorv1alpha1.Garden) {
		garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer.Domain, garden.Spec.RuntimeCluster.Ingress.Domains = nil, nil
	}))
	found := false
	for _, wait := range planOf(t, homeless).Waits {
		found = found || strings.Contains(wait.Reason, "must name a domain for the discovery server")
	}
	if !found {
		t.Error("a discovery server without a domain is not reported")
	}
}
