package managedresource

import (
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// activeFight returns the fight over an object that the managers have changed too often.
func activeFight(managers ...string) fight.Fight {
	fights, now := fight.New[object.Key](), time.Unix(1_000_000, 0)
	for range fight.Tolerance + 1 {
		fights.Observe(object.Key{}, "", "", now)
	}
	for _, manager := range managers {
		fights.Observe(object.Key{}, "", manager, now)
	}
	return fights.Of(object.Key{}, now)
}

func TestDescribeFight(t *testing.T) {
	ref := manifestOf(configMapKind, "ns", "x").Ref
	const want = `v1/ConfigMap/ns/x keeps being changed by the field manager "alpha" and "zeta": stop one of the two writers from setting these fields; ` +
		waysToKeep
	if got := describeFight(change{Ref: ref, fight: activeFight("zeta", "alpha")}); got != want {
		t.Errorf("%s", got)
	}
	const unknown = "v1/ConfigMap/ns/x keeps being changed by another client: stop one of the two writers from setting these fields; " + waysToKeep
	if got := describeFight(change{Ref: ref}); got != unknown {
		t.Errorf("%s", got)
	}
	fights, now := fight.New[object.Key](), time.Unix(1_000_000, 0)
	fights.ObserveDeletion(object.Key{}, now)
	const deleted = "v1/ConfigMap/ns/x keeps being deleted by another client: stop it, or remove the object from the manifests"
	if got := describeFight(change{Ref: ref, fight: fights.Of(object.Key{}, now)}); got != deleted {
		t.Errorf("%s", got)
	}
	if fights.Observe(object.Key{}, "", "", now); fights.Of(object.Key{}, now).Deleted {
		t.Error("a change counts as a deletion")
	}
}
