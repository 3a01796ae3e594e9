package apiserverproxy

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	values := Values{
		Image: "gateway:v1", Address: "240.1.2.3", Host: "api.one.dev.internal.example.org", VerticalPodAutoscaler: true,
		Destination: "outbound|443||kube-apiserver.shoot--dev--one.svc.cluster.local",
	}
	objects, err := Objects(values)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
	values.Address = ""
	if _, err := Objects(values); err == nil || !strings.Contains(err.Error(), "need the address") {
		t.Errorf("without an address: %v", err)
	}
}
