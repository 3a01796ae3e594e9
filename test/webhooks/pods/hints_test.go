package pods

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// hints returns the zone and the hinted zones of each endpoint, in ascending order.
func hints(slice *discoveryv1.EndpointSlice) string {
	var texts []string
	for _, endpoint := range slice.Endpoints {
		text := ptr.Deref(endpoint.Zone, "none") + "->"
		if endpoint.Hints != nil {
			for _, zone := range endpoint.Hints.ForZones {
				text += zone.Name
			}
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// TestEndpointSliceHints checks the specification's example. Other hints are replaced, on creation and on update.
func TestEndpointSliceHints(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(endpointSliceHints())
	newSlice := func(name, consider string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"endpoint-slice-hints.resources.gardener.cloud/consider": consider}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.1.2.3"}, Zone: ptr.To("zone-a")},
				{Addresses: []string{"10.1.2.4"}, Zone: ptr.To("zone-b"), Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-a"}}}},
				{Addresses: []string{"10.1.2.5"}},
			},
		}
	}
	slice := newSlice("example-hints", "true")
	kit.Must(t, f.client.Create(t.Context(), slice))
	if got := hints(slice); got != "none-> zone-a->zone-a zone-b->zone-b" {
		t.Errorf("the hints are %s", got)
	}
	slice.Endpoints[0].Hints = nil
	slice.Endpoints[2].Zone = ptr.To("zone-c")
	kit.Must(t, f.client.Update(t.Context(), slice))
	if got := hints(slice); got != "zone-a->zone-a zone-b->zone-b zone-c->zone-c" {
		t.Errorf("after an update, the hints are %s", got)
	}
	other := newSlice("other", "false")
	kit.Must(t, f.client.Create(t.Context(), other))
	if got := hints(other); got != "none-> zone-a-> zone-b->zone-a" {
		t.Errorf("without the label, the hints are %s", got)
	}
}

// TestHintsOfAService checks that the label of a Service is copied to its EndpointSlices, and that the hints remain when Kubernetes
// changes the slices.
func TestHintsOfAService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(endpointSliceHints())
	f.newNode("a", map[string]string{corev1.LabelTopologyZone: "zone-a"})
	f.newNode("b", map[string]string{corev1.LabelTopologyZone: "zone-b"})
	kit.Must(t, f.client.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web", Labels: map[string]string{"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}))
	deployment := f.deployment(2, nil)
	template := &deployment.Spec.Template.Spec
	template.NodeSelector = map[string]string{"owner": f.namespace}
	template.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: deployment.Spec.Selector,
	}}
	kit.Must(t, f.client.Create(t.Context(), deployment))
	eventually := func(want string) {
		t.Helper()
		kit.Eventually(t, "endpoints have hints", func() string {
			slices := &discoveryv1.EndpointSliceList{}
			kit.Must(t, f.client.List(t.Context(), slices, client.InNamespace(f.namespace)))
			var all []string
			for i := range slices.Items {
				all = append(all, hints(&slices.Items[i]))
			}
			if got := strings.Join(all, "; "); got != want {
				return fmt.Sprintf("the hints are %s", got)
			}
			return ""
		})
	}
	eventually("zone-a->zone-a zone-b->zone-b")
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = ptr.To[int32](4)
	kit.Must(t, f.client.Patch(t.Context(), deployment, patch))
	eventually("zone-a->zone-a zone-a->zone-a zone-b->zone-b zone-b->zone-b")
}
