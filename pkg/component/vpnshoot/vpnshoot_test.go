package vpnshoot

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Image: "tunnel:v1", CABundle: "bundle", VerticalPodAutoscaler: true,
		Servers: map[string]string{
			"vpn-seed-server-0.shoot--dev--one.svc.cluster.local": "api.one.dev.internal.example.org:443",
			"vpn-seed-server-1.shoot--dev--one.svc.cluster.local": "api.one.dev.internal.example.org:443",
		},
		Certificate: map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key"), "ca.crt": []byte("authority")},
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
}

// TestCertificate checks that a new certificate and a new authority replace the Pods.
func TestCertificate(t *testing.T) {
	renewed, rotated := values(), values()
	renewed.Certificate["tls.crt"] = []byte("another certificate")
	rotated.CABundle = "another bundle"
	names := map[string]bool{}
	for _, each := range []Values{values(), renewed, rotated} {
		objects, err := Objects(each)
		if err != nil {
			t.Fatal(err)
		}
		names[objects[0].GetName()] = true
	}
	if len(names) != 3 {
		t.Errorf("the Secrets are called %v", names)
	}
}
