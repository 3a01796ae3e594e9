package vpnseedserver

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values(change func(*Values)) Values {
	v := Values{
		Namespace: "shoot--dev--one", Image: "tunnel:v1", Servers: 1, VerticalPodAutoscaler: true, CA: "ca-vpn-bundle-1", Server: "vpn-seed-server-1",
	}
	change(&v)
	return v
}

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"one":    func(*Values) {},
		"two":    func(v *Values) { v.Servers, v.RecommendOnly = 2, true },
		"asleep": func(v *Values) { v.Asleep, v.VerticalPodAutoscaler = true, false },
	} {
		objects, err := Objects(values(change))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, objects)
	}
}

// TestHosts checks that the certificate is valid for each name at which a server is reached.
func TestHosts(t *testing.T) {
	names := map[string]bool{}
	for _, name := range Secrets("shoot--dev--one")[0].DNSNames {
		names[name] = true
	}
	for _, host := range []string{Host("shoot--dev--one", 0), Host("shoot--dev--one", Most-1), Name} {
		if !names[host] {
			t.Errorf("the certificate has the names %v, but not %s", names, host)
		}
	}
}
