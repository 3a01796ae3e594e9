package endpointslicehints

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

func slices() admittest.Handler[*discoveryv1.EndpointSlice] {
	return admittest.Handler[*discoveryv1.EndpointSlice]{
		Handler: NewHandler(), Kind: metav1.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
		New: func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		Erase: func(slice *discoveryv1.EndpointSlice) {
			for i := range slice.Endpoints {
				slice.Endpoints[i].Hints = nil
			}
		},
	}
}

func TestHints(t *testing.T) {
	slices().Run(t, map[string]admittest.Case{
		"the example of the specification": {
			Before: `
metadata: {name: example-hints}
addressType: IPv4
endpoints:
- {addresses: [10.1.2.3], conditions: {ready: true}, hostname: pod-1, zone: zone-a}
- {addresses: [10.1.2.4], conditions: {ready: true}, hostname: pod-2, zone: zone-b}
`,
			After: `
metadata: {name: example-hints}
addressType: IPv4
endpoints:
- {addresses: [10.1.2.3], conditions: {ready: true}, hostname: pod-1, zone: zone-a, hints: {forZones: [{name: zone-a}]}}
- {addresses: [10.1.2.4], conditions: {ready: true}, hostname: pod-2, zone: zone-b, hints: {forZones: [{name: zone-b}]}}
`,
		},
		"other hints are replaced": {
			Before: "addressType: IPv4\nendpoints: " + `[{addresses: [10.1.2.3], zone: a, hints: {forZones: [{name: b}, {name: c}], forNodes: [{name: d}]}}]`,
			After:  "addressType: IPv4\nendpoints: " + `[{addresses: [10.1.2.3], zone: a, hints: {forZones: [{name: a}]}}]`,
		},
		"no zone, or an empty one": {
			Before: "addressType: IPv4\nendpoints: " + `[{addresses: [10.1.2.3], hints: {forZones: [{name: b}]}}, {addresses: [10.1.2.4], zone: ""}]`,
		},
		"endpoints that are not ready, too": {
			Before: "addressType: IPv6\nendpoints: " + `[{addresses: ["2001:db8::1"], conditions: {ready: false}, zone: a}]`,
			After:  "addressType: IPv6\nendpoints: " + `[{addresses: ["2001:db8::1"], conditions: {ready: false}, zone: a, hints: {forZones: [{name: a}]}}]`,
		},
		"no endpoints": {Before: "addressType: IPv4\nendpoints: " + `[]`},
	})
}

func FuzzHints(f *testing.F) {
	f.Add([]byte(`{"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"zone":"a","hints":{"forNodes":[{"name":"n"}],"forZones":[{"name":"b"},{"name":"c"}]}},{"zone":""}]}`))
	f.Add([]byte(`{"endpoints":[null,{"zone":"a"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) { slices().Robust(t, raw) })
}
