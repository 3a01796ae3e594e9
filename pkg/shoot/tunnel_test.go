package shoot

import (
	"slices"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/exposure"
)

// TestTunnel checks how many servers the tunnel has, and where its agents reach them: through the gateway of the API server, or at their Services.
func TestTunnel(t *testing.T) {
	const first, second = "vpn-seed-server-0.shoot--dev--one.svc.cluster.local", "vpn-seed-server-1.shoot--dev--one.svc.cluster.local"
	gateway := func(in *Inputs) {
		in.Seed.Annotations = map[string]string{constants.AnnotationSeedExposure: string(exposure.GatewayAPI)}
	}
	two := func(in *Inputs) {
		in.Shoot.Annotations = map[string]string{constants.AnnotationControlPlaneHighAvailabilityVPN: "true"}
	}
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   map[string]string
		routes int
	}{
		"at their Services": {func(*Inputs) {}, map[string]string{first: first + ":1194"}, 0},
		"two servers":       {two, map[string]string{first: first + ":1194", second: second + ":1194"}, 0},
		"a gateway": {func(in *Inputs) { gateway(in); two(in) }, map[string]string{
			first: "api.one.dev.internal.example.org:443", second: "api.one.dev.internal.example.org:443",
		}, 2},
	} {
		in := upWithWorkers(t, test.change)
		got, err := in.serverAddresses()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for host, address := range test.want {
			if got[host] != address || len(got) != len(test.want) {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
		objects, err := in.tunnelServers()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var kinds []string
		for _, object := range objects {
			kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
		}
		if found := len(kinds) - len(slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "TLSRoute" })); found != test.routes {
			t.Errorf("%s: %d routes, want %d", name, found, test.routes)
		}
	}
}
