package metricsserver

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Image: "metrics-server:v1", Certificate: map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key"), "ca.crt": []byte("authority")},
		CABundle: []byte("bundle"), ServerHost: "api.one.dev.internal.example.org", Registered: true,
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
	scaled := values()
	scaled.VerticalPodAutoscaler = true
	if objects, err = Objects(scaled); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "autoscaled", objects)
}

// TestNotRegistered checks that the API server has no registration of an API that it cannot reach.
func TestNotRegistered(t *testing.T) {
	unreachable := values()
	unreachable.Registered = false
	objects, err := Objects(unreachable)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(objects, func(object client.Object) bool { return object.GetName() == "v1beta1.metrics.k8s.io" }) {
		t.Error("the API is registered")
	}
}

// TestCertificate checks that a new certificate replaces the Pods, and that the Secret has no more than they need.
func TestCertificate(t *testing.T) {
	renewed := values()
	renewed.Certificate["tls.crt"] = []byte("another certificate")
	names := map[string]bool{}
	for _, each := range []Values{values(), renewed} {
		objects, err := Objects(each)
		if err != nil {
			t.Fatal(err)
		}
		names[objects[1].GetName()] = true
	}
	if len(names) != 2 {
		t.Errorf("the Secrets are called %v", names)
	}
}
