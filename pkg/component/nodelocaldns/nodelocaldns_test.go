package nodelocaldns

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Image: "node-local-dns:v1", Pools: []string{"large", "small"}, ClusterDomain: "cluster.local", ClusterIPs: []string{"100.64.0.10"},
		Config: corev1beta1.NodeLocalDNS{Enabled: true},
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "iptables", objects)
	other := values()
	other.IPVS, other.VerticalPodAutoscaler, other.Pools = true, true, []string{"small"}
	if objects, err = Objects(other); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "ipvs", objects)
}

// TestSettings checks the fields of spec.systemComponents.nodeLocalDNS.
func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		change        func(*Values)
		tcp, udp      int
		forwards      string
		servers, bind int
	}{
		"defaults":               {func(*Values) {}, 4, 0, upstreamServers, 1, 4},
		"UDP to the cluster":     {func(v *Values) { v.Config.ForceTCPToClusterDNS = ptr.To(false) }, 1, 3, upstreamServers, 1, 4},
		"UDP to other servers":   {func(v *Values) { v.Config.ForceTCPToUpstreamDNS = ptr.To(false) }, 3, 1, upstreamServers, 1, 4},
		"all to the cluster":     {func(v *Values) { v.Config.DisableForwardToUpstreamDNS = ptr.To(true) }, 4, 0, clusterDNS, 4, 4},
		"IPVS":                   {func(v *Values) { v.IPVS = true }, 4, 0, "forward . 100.64.0.10 {", 3, 0},
		"IPv6 has other address": {func(v *Values) { v.IPv6 = true }, 4, 0, "[" + AddressIPv6 + "]:8099", 1, 0},
	} {
		changed := values()
		test.change(&changed)
		text := corefile(changed)
		both := "bind " + AddressIPv4 + " 100.64.0.10"
		if strings.Count(text, "force_tcp") != test.tcp || strings.Count(text, "prefer_udp") != test.udp ||
			strings.Count(text, test.forwards) != test.servers || strings.Count(text, both) != test.bind {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
