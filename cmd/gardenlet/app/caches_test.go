package app

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestCacheHasObjectsThatMove checks that the cache of a gardenlet contains the Shoots and BackupEntries that another Seed takes over, as long as the
// own Seed has them. The API server labels them for both Seeds.
func TestCacheHasObjectsThatMove(t *testing.T) {
	t.Parallel()
	found := 0
	for object, options := range gardenCacheOptions("a").ByObject {
		switch object.(type) {
		case *gardencorev1beta1.Shoot, *gardencorev1beta1.BackupEntry:
		default:
			continue
		}
		found++
		for set, want := range map[string]bool{"a": true, "b": false, "a b": true} {
			given := labels.Set{}
			for _, seed := range []string{"a", "b"} {
				if set == seed || set == "a b" {
					given["name.seed.gardener.cloud/"+seed] = "true"
				}
			}
			if options.Field != nil || options.Label == nil || options.Label.Matches(given) != want {
				t.Errorf("%T of Seeds %s: the selectors are %v, %v", object, set, options.Label, options.Field)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d kinds are cached", found)
	}
}
