package gardenletvpa

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden"})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "garden", objects)
}
