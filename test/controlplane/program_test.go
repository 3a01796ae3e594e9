package controlplane

import (
	"reflect"
	"testing"

	gardenlet "github.com/trellis-k8s/trellis/cmd/gardenlet/app"
)

func TestSourceOf(t *testing.T) {
	if source, err := sourceOf(reflect.TypeFor[gardenlet.Program]()); err != nil || source != "./cmd/gardenlet" {
		t.Errorf("got %q, %v", source, err)
	}
	for _, app := range []reflect.Type{reflect.TypeFor[ControlPlane](), reflect.TypeFor[string](), reflect.TypeFor[reflect.Type]()} {
		if source, err := sourceOf(app); err == nil {
			t.Errorf("%s: got %q, want an error", app, source)
		}
	}
}
