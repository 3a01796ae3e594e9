package clusteridentity

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{Identity: "seed-1-identity", Origin: OriginSeed})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "seed", objects)
}

func TestUnknownIdentity(t *testing.T) {
	for _, values := range []Values{{Origin: OriginSeed}, {Identity: "seed-1-identity"}} {
		if objects, err := Objects(values); err == nil {
			t.Errorf("%+v: got %d objects and no error", values, len(objects))
		}
	}
}
