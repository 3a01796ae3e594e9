package nodeproblemdetector

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	values := Values{Image: "node-problem-detector:v1", ServerHost: "api.one.dev.internal.example.org"}
	objects, err := Objects(values)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
	values.VerticalPodAutoscaler = true
	if objects, err = Objects(values); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "autoscaled", objects)
}
