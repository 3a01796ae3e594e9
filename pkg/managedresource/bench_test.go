package managedresource

import (
	"fmt"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

const benchmarkObjects = 1000

func BenchmarkPlanApply(b *testing.B) {
	in := applyInput{recorded: inventory{}, live: map[object.Key]live.State{}, ownership: owners{}.ownership()}
	for i := range benchmarkObjects {
		manifest := manifestOf(deploymentKind, "shop", fmt.Sprint("app-", i))
		in.manifests = append(in.manifests, manifest)
		in.recorded[manifest.Key()] = entryOf(manifest, "sent.owned")
		in.live[manifest.Key()] = present(live.Observation{Origin: "garden/shop", OwnedDigest: "owned"})
	}
	b.ReportAllocs()
	for b.Loop() {
		if changes := planApply(in); changes[0].action != actionSkip {
			b.Fatalf("got %s, want Skip, because there is nothing to do at rest", changes[0].action)
		}
	}
}
